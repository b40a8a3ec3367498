"""What a collector tells of itself, how it spares the processor, and what it shows to people."""

import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tidegate_edge.preflight import version_of
from tidegate_edge.schedule import Pace, next_slot
from tidegate_edge.show.screen import printable, scaled

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")


def collector(*arguments, **settings):
    command = [*settings.pop("under", ()), COLLECTOR, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **settings)


@pytest.fixture
def traffic():
    """A connection that carried 100,000 bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far = listener.accept()[0]
        with near, far:
            near.sendall(bytes(100_000))
            left = 100_000
            while left:
                left -= len(far.recv(left))
            yield listener.getsockname()[1]


@given(
    last=st.integers(0, 1000),
    late=st.integers(0, 5000),
    interval=st.integers(1, 1000),
    cpu=st.integers(0, 5000),
    share=st.floats(0.001, 1),
)
def test_polls_take_no_more_of_a_processor_than_they_may(last, late, interval, cpu, share):
    slot = next_slot(last, last * interval + late, Pace(interval, max_cpu=share), cpu)
    assert slot.number == last + 1 + slot.skipped + slot.spared
    assert cpu <= (slot.number - last) * interval * share + 1
    if slot.spared:  # and no slot more than that is left out
        assert cpu > (slot.number - last - 1) * interval * share - 1


@given(st.integers(0, 10**6), st.integers(2, 10**6))
def test_jitter_delays_by_half_an_interval_at_most(slot, interval):
    due = Pace(interval, interval // 2).due_ns(slot)
    assert slot * interval <= due <= slot * interval + interval // 2


def test_a_collector_over_its_share_polls_less_and_says_so():
    begun = time.monotonic()
    done = collector("run", "--json", "--interval", "1ms", "--max-cpu", "1", "--count", "5")
    counters = json.loads(done.stderr.splitlines()[-1])
    assert counters["polls"] == 5
    assert counters["spared"] >= 4
    assert time.monotonic() - begun > (counters["spared"] + counters["skipped"]) / 1000


def test_too_much_jitter_is_wrong_usage():
    done = collector("run", "--json", "--interval", "1s", "--jitter", "501ms")
    assert done.returncode == 2
    assert "more than half the interval" in done.stderr.decode()


@pytest.mark.usefixtures("traffic")
def test_metrics_are_the_counters(tmp_path):
    command = [
        COLLECTOR,
        "run",
        "--json",
        "--out",
        tmp_path / "rows",
        "--interval",
        "20ms",
        "--metrics",
        ":0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        url = running.stderr.readline().removeprefix("metrics: ").strip()
        try:
            assert url.startswith("http://127.0.0.1:")
            deadline = time.monotonic() + 60
            seen = {}
            while seen.get("tidegate_collector_polls_total", 0) < 3:
                assert time.monotonic() < deadline
                text = urllib.request.urlopen(url, timeout=30).read().decode()  # noqa: S310 — of this host, asserted above
                seen = {
                    sample.name + "".join(sample.labels.get("reader", "")): sample.value
                    for family in text_string_to_metric_families(text)
                    for sample in family.samples
                    if "le" not in sample.labels
                }
        finally:
            running.send_signal(signal.SIGTERM)
            told = running.stderr.read()
    assert running.returncode == 0
    counters = json.loads(told.splitlines()[-1])
    gauges = {"namespaces"}
    missing = {
        name
        for name in counters
        if f"tidegate_collector_{name}" + ("" if name in gauges else "_total") not in seen
    }
    assert missing == set()
    assert 0 < seen["tidegate_collector_rows_total"] <= counters["rows"]
    assert seen["tidegate_collector_poll_seconds_count"] >= 3
    assert seen["tidegate_collector_readerbpf"] + seen["tidegate_collector_readernetlink"] == 1


def test_a_port_that_is_taken_is_a_missing_part():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = collector("run", "--json", "--count", "1", "--metrics", f":{taken.getsockname()[1]}")
    assert done.returncode == 3
    assert "Address already in use" in done.stderr.decode()


@pytest.mark.parametrize("value", ["98o9", "host:9809", "127.0.0.1:", "127.0.0.1:65536", "::1"])
def test_what_is_no_address_is_told(value):
    done = collector("run", "--json", "--count", "1", "--metrics", value)
    assert (done.returncode, "is no address and port" in done.stderr.decode()) == (2, True)


def test_show_sums_by_prefix_and_filters(traffic):
    def shown(*more):
        done = collector("show", "--json", "--interval", "50ms", *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    (line,) = shown("--port", traffic, "--prefix", "127.0.0.1/32")
    assert (line["remote"], line["sockets"], line["bytes"]) == ("127.0.0.0/24", 2, 100_001)
    sockets = shown("--port", traffic, "--by", "socket", "--sort", "bytes", "--full-addresses")
    assert [each["bytes"] for each in sockets] == sorted((each["bytes"] for each in sockets), reverse=True)
    assert sockets[0]["remote"] == f"127.0.0.1 :{traffic}"
    assert len(shown("--port", traffic, "--by", "socket", "--limit", "1")) == 1
    assert shown("--port", traffic, "--algorithm", "vegas") == []
    assert shown("--prefix", "198.51.100.0/24") == []


def ready(file, event, patience_s):
    """Whether it is, in time; by poll, for select takes no descriptor above 1023, and chdb keeps many open."""
    poller = select.poll()
    poller.register(file, event)
    return bool(poller.poll(patience_s * 1000))


def test_show_measures_the_rate_between_two_polls(traffic):
    command = [COLLECTOR, "show", "--json", "--interval", "1s", "--port", str(traffic), "--by", "socket"]
    with socket.create_connection(("127.0.0.1", traffic)) as near:
        near.setblocking(False)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as showing:
            while showing.poll() is None:  # fills the peer's buffers, then waits
                ready(near, select.POLLOUT, 0.05)
                try:
                    near.send(bytes(500))
                except BlockingIOError:
                    continue
                time.sleep(0.01)
            lines = json.loads(showing.stdout.read())
    assert lines[0]["rate"] > 1000
    assert lines[0]["rate"] == max(line["rate"] for line in lines)


def test_show_draws_screens_on_a_terminal_and_ends_with_ctrl_c(traffic):
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    command = [COLLECTOR, "show", "--interval", "50ms", "--port", str(traffic)]
    with subprocess.Popen(command, stdout=slave, env=environment) as showing:
        drawn = b""
        try:
            while drawn.count(b"\x1b[H") < 3:
                assert ready(master, select.POLLIN, 20)
                drawn += os.read(master, 1 << 16)
            showing.send_signal(signal.SIGINT)
            assert showing.wait(20) == 0
        finally:
            showing.kill()
    os.close(slave)
    os.close(master)
    second = drawn.split(b"\x1b[H")[2].decode()
    lines = [re.sub(r"\x1b\[[KJ]", "", line) for line in second.splitlines()]
    assert lines[1].startswith("REMOTE")
    assert lines[2].startswith("127.0.0.0/24")
    assert all(len(line) <= 60 for line in lines)


@given(st.floats(0, 1e15))
def test_numbers_for_people_are_short(number):
    assert re.fullmatch(r"\d+|\d+\.\d[kMGT]", scaled(number))
    assert len(scaled(number)) <= 9


@given(st.text())
def test_nothing_that_a_terminal_would_obey_is_shown(text):
    assert printable(text).isprintable()


def test_check_finds_what_this_host_has(tmp_path):
    done = collector("check", "--json", "--spool", tmp_path)
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0
    assert found["kernel"]["detail"] == os.uname().release
    assert found["reader netlink"]["state"] == found["spool"]["state"] == "ok"
    assert all(finding["way_out"] for finding in found.values() if finding["state"] != "ok")


def test_what_is_missing_is_the_answer_no(tmp_path):
    done = collector("check", "--fleet", tmp_path / "none.json", "--spool", tmp_path / "none")
    assert done.returncode == 1
    assert re.search(r"missing +fleet +.*none\.json: No such file", done.stdout.decode())
    assert "missing   spool" in done.stdout.decode()


@pytest.mark.root
def test_check_without_privileges_degrades_and_still_says_yes():
    done = collector("check", "--json", under=["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0
    assert {found[name]["state"] for name in ("CAP_NET_ADMIN", "CAP_BPF", "CAP_SYS_ADMIN", "reader bpf")} == {
        "degraded"
    }
    assert found["reader netlink"]["state"] == "ok"


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.1.0-13-amd64", (6, 1)), ("5.10", (5, 10)), ("6.18-rc1", (6, 18)), ("weird", (0, 0)), ("", (0, 0))],
)
def test_a_kernel_is_known_by_its_release(release, version):
    assert version_of(release) == version
