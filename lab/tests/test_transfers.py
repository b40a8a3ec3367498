"""Transfers are whole, timed, and readable while their client goes on."""

import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from tidegate_lab.namespaces import namespace
from tidegate_lab.service import service
from tidegate_lab.transfers import Client, fetch, fetching, summary

pytestmark = pytest.mark.root

SIZE = 100_000


@contextmanager
def served(directory, address):
    (directory / "object").write_bytes(bytes(SIZE))
    with namespace("alone", [address]) as name:
        bind = address.partition("/")[0]
        argv = (sys.executable, "-m", "http.server", "8080", "--bind", bind, "--directory", str(directory))
        with service(name, *argv, port=8080):
            yield name


@pytest.mark.parametrize(
    ("address", "host"), [("192.0.2.1/32", "192.0.2.1"), ("2001:db8::1/128", "[2001:db8::1]")]
)
def test_a_client_makes_as_many_transfers_as_asked(tmp_path, address, host):
    with served(tmp_path, address) as name:
        started = time.time()
        (transfers,) = fetch([Client(name, f"http://{host}:8080/object", 3)])
        ended = time.time()
    assert [transfer.size for transfer in transfers] == [SIZE] * 3
    assert started < transfers[0].started_at < transfers[1].started_at < transfers[2].started_at < ended
    assert sum(transfer.seconds for transfer in transfers) < ended - started
    assert summary(transfers).median_s == sorted(transfer.seconds for transfer in transfers)[1]


def test_looking_at_what_is_completed_disturbs_nothing(tmp_path):
    with (
        served(tmp_path, "192.0.2.1/32") as name,
        fetching([Client(name, "http://192.0.2.1:8080/object")]) as running,
    ):
        seen = []
        while len(seen) < 50:
            (now,) = running.completed()
            assert now[: len(seen)] == seen
            seen = now


def test_a_client_that_fails_is_reported(tmp_path):
    with (
        served(tmp_path, "192.0.2.1/32") as name,
        pytest.raises(subprocess.CalledProcessError, match="nothing"),
    ):
        fetch([Client(name, "http://192.0.2.1:8080/nothing", 1)])


def test_a_server_that_does_not_start_is_reported_with_its_words():
    with namespace("alone") as name, pytest.raises(RuntimeError, match="ended with code 3") as caught:  # noqa: SIM117
        with service(name, "sh", "-c", "echo no port today; exit 3", port=80):
            pass
    assert "no port today" in "".join(caught.value.__notes__)
