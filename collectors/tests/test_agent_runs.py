"""Runs of the agent on a real kernel: what each says, when it refuses, and what connections then do."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root
BBR = {"congestion_control": "bbr"}
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def test_a_dry_run_says_what_a_run_then_does_and_changes_nothing(host):
    host.steer(("198.18.7.0/24", BBR), default="reno")
    before, algorithm = host.routes(), host.algorithm()
    foretold = host.apply("--dry-run")
    assert foretold["changed"]
    assert (host.routes(), host.algorithm()) == (before, algorithm)
    assert not (host.directory / "state").exists()
    assert host.apply() == foretold
    assert foretold["before"] == []
    assert foretold["after"] == ["198.18.7.0/24 via 192.0.2.1 dev up0 metric 201000000 congctl bbr"]


def test_status_follows_the_kernel_and_a_second_run_repairs_it(host):
    host.steer(("198.18.7.0/24", BBR), ("198.18.8.0/24", BBR), ("198.18.9.0/24", BBR | {"min_bytes": 1}))

    def states():
        result = host.agent("status", "--json", check=False)
        document = json.loads(result.stdout)
        assert result.returncode == (0 if document["matches"] else 1)
        return {each["prefix"]: each["state"] for each in document["claims"]}

    refused = {"198.18.9.0/24": "not applied"}
    assert states() == {"198.18.7.0/24": "missing", "198.18.8.0/24": "missing"} | refused
    host.apply()
    assert states() == {"198.18.7.0/24": "holds", "198.18.8.0/24": "holds"} | refused
    host.ip("route del 198.18.7.0/24 proto 201")
    assert states() == {"198.18.7.0/24": "missing", "198.18.8.0/24": "holds"} | refused
    host.ip("route replace default via 192.0.2.65")
    assert states() == {"198.18.7.0/24": "missing", "198.18.8.0/24": "drifted"} | refused
    document = host.apply()
    assert (document["added"], document["replaced"]) == (["198.18.7.0/24"], ["198.18.8.0/24"])
    assert host.own("198.18.8.0/24")["gateway"] == "192.0.2.65"
    assert states() == {"198.18.7.0/24": "holds", "198.18.8.0/24": "holds"} | refused


def test_a_route_that_the_kernel_refuses_does_not_stop_the_others(host):
    host.ip("route add 198.18.0.0/16 via 192.0.2.65")
    host.ip("route del 192.0.2.64/26")  # the route stays, and its gateway is no longer a neighbour
    host.steer(("198.18.7.0/24", BBR), ("198.51.100.0/24", BBR))
    document = host.apply(exit_code=1)
    assert document["failed"] == [{"prefix": "198.18.7.0/24", "reason": "Nexthop has invalid gateway"}]
    assert document["added"] == ["198.51.100.0/24"]
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr"}


@pytest.mark.parametrize("text", ["", "{", '{"claims": []}', "null"])
def test_a_corrupted_steering_file_leaves_the_kernel_untouched(host, text):
    host.steer(("198.18.7.0/24", BBR), default="reno")
    host.apply()
    before = host.routes()
    host.steer(text=text)
    for command in ("apply", "status"):
        result = host.agent(command, check=False)
        assert (result.returncode, result.stdout) == (2, "")
        assert "steering.json" in result.stderr
    assert (host.routes(), host.algorithm()) == (before, "reno")


def test_an_unknown_algorithm_changes_nothing_at_all(host):
    host.steer(("198.18.7.0/24", BBR), ("198.18.8.0/24", {"congestion_control": "nosuch"}), default="reno")
    before, algorithm = host.routes(), host.algorithm()
    result = host.agent("apply", check=False)
    assert result.returncode == 3
    assert "`nosuch`" in result.stderr
    assert "tcp_available_congestion_control" in result.stderr
    assert (host.routes(), host.algorithm()) == (before, algorithm)


def test_the_default_is_set_and_put_back(host):
    before = host.algorithm()
    wanted = "reno" if before != "reno" else "bbr"
    host.steer(default=wanted)
    document = host.apply()["default_congestion_control"]
    assert document == {"wanted": wanted, "before": before, "after": wanted, "changed": True}
    assert host.algorithm() == wanted
    assert not host.apply()["changed"]
    host.steer(default=None)
    assert host.apply()["default_congestion_control"]["after"] == before
    assert host.algorithm() == before
    host.steer(default=wanted)
    host.apply()
    host.agent("flush")
    assert host.algorithm() == before


def test_a_default_that_the_host_forbids_changes_nothing(host):
    with host_allows("reno"):
        host.steer(("198.18.7.0/24", BBR), default="bbr")
        host.inside("sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno")
        before = host.routes()
        result = host.agent("apply", check=False)
        assert result.returncode == 3
        assert "net.ipv4.tcp_allowed_congestion_control" in result.stderr
        assert (host.routes(), host.algorithm()) == (before, "reno")


def test_without_the_capability_a_run_is_refused_and_a_dry_run_is_not(host):
    host.steer(("198.18.7.0/24", BBR))
    powerless = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    result = host.agent("apply", under=powerless, check=False)
    assert (result.returncode, result.stdout) == (3, "")
    assert "CAP_NET_ADMIN" in result.stderr
    host.agent("apply", "--dry-run", under=powerless)


def test_no_iproute2_is_needed(host):
    host.steer(("198.18.7.0/24", BBR))
    host.agent("apply", under=["env", "PATH=/nonexistent"])
    assert host.settings("198.18.7.0/24") == {"congestion": "bbr"}


def test_runs_at_the_same_time_take_turns(host):
    host.steer(*((f"198.18.{n}.0/24", BBR) for n in range(200)))
    documents = host.apply_at_once(3)
    assert sorted(len(each["added"]) for each in documents) == [0, 0, 200]
    assert sorted(each["unchanged"] for each in documents) == [0, 200, 200]
    assert not [each["failed"] for each in documents if each["failed"]]


SERVER = """
import socket, sys
listener = socket.create_server(("192.0.2.2", 8080))
print("ready", flush=True)
held = [listener.accept()[0] for _ in range(2)]
sys.stdin.read()
"""
CLIENT = """
import socket, sys
held = [socket.create_connection(("192.0.2.2", 8080), source_address=(a, 0)) for a in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""


def test_new_connections_of_a_claimed_prefix_run_as_claimed_and_others_as_the_host_does(host):
    for client in ("198.18.7.1", "198.18.8.1"):
        host.peer_answers_for(client)
    host.steer(("198.18.7.0/24", BBR | {"initcwnd": 33}), default="reno")
    host.apply()
    with (
        started(host.name, SERVER),
        started(host.peer, CLIENT, "198.18.7.1", "198.18.8.1"),
    ):
        host.awaits(lambda: len(host.connections("192.0.2.2:8080")) == 2)
        seen = host.connections("192.0.2.2:8080")
    assert "bbr" in seen["198.18.7.1"]
    assert "cwnd:33" in seen["198.18.7.1"]
    assert "reno" in seen["198.18.8.1"]
    assert "cwnd:10" in seen["198.18.8.1"]


@contextlib.contextmanager
def started(namespace, program, *arguments):
    """A program that says when it is ready, and ends when its standard input does."""
    argv = ["ip", "netns", "exec", namespace, sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


@contextlib.contextmanager
def host_allows(names):
    """Narrow what the machine's other namespaces may have as their default, for the length of one test."""
    if not os.access(ALLOWED, os.W_OK):
        pytest.skip(f"{ALLOWED} is not this namespace's to write")
    before = ALLOWED.read_text()
    ALLOWED.write_text(names)
    try:
        yield
    finally:
        ALLOWED.write_text(before)
