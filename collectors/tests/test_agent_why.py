"""What `why` says of a connection that BPF steered: what it was given, beside what it has."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.root
CLAIM = "198.18.7.0/24"
CLIENT, UNCLAIMED = "198.18.7.1", "198.18.8.1"
SERVER = """
import socket, sys
listener = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
held = [listener.accept()[0] for _ in range(2)]
print("accepted", flush=True)
sys.stdin.read()
"""
CLIENTS = """
import socket, sys
held = [socket.create_connection(("192.0.2.2", 8080), source_address=(each, 0)) for each in sys.argv[1:]]
sys.stdin.read()
"""


@pytest.fixture
def connected(host, entering):
    """Makes two clients connect to a server in the steered cgroup."""
    for each in (CLIENT, UNCLAIMED):
        host.peer_answers_for(each)
    processes = []

    def python(before, *argv):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes.append(subprocess.Popen([*before, sys.executable, "-c", *argv], text=True, **pipes))
        return processes[-1].stdout

    def connect():
        said = python([*entering, "nsenter", f"--net=/run/netns/{host.name}"], SERVER)
        assert said.readline() == "ready\n"
        python(["ip", "netns", "exec", host.peer], CLIENTS, CLIENT, UNCLAIMED)
        assert said.readline() == "accepted\n"

    yield connect
    for each in processes:
        each.kill()
        each.communicate(timeout=60)


@pytest.mark.parametrize("peer", [CLIENT, f"::ffff:{CLIENT}"])
def test_it_says_what_each_connection_was_given_and_has(bpf_daemon, connected, peer):
    settings = {"congestion_control": "bbr", "min_bytes": 100_000, "initcwnd": 31}
    bpf_daemon.host.steer((CLAIM, settings), default="reno")
    bpf_daemon.apply()
    connected()
    bpf_daemon.host.steer((CLAIM, {"initcwnd": 44}), default="reno", generation="2222222222222222")
    bpf_daemon.apply()

    document = bpf_daemon.ask("why", peer=peer).document
    assert (document["peer"], document["prefix"], document["backend"]) == (CLIENT, CLAIM, "bpf")
    assert (document["generation"], document["settings"]) == ("2222222222222222", {"initcwnd": 44})
    (connection,) = document["connections"]
    assert connection["cwnd"] == 31  # nothing was sent yet
    assert connection["congestion_control"] == "reno"
    # It keeps what it was given when it was opened.
    assert connection["given"] == {
        "generation": "0123456789abcdef",
        "prefix": CLAIM,
        "settings": {"congestion_control": "bbr", "initcwnd": 31},
        "min_bytes": 100_000,
        "window": "set",
        "algorithm": "waiting",
        "bytes_before_switch": 0,
    }
    lines = bpf_daemon.host.agent("why", peer).stdout.splitlines()
    assert lines[0] == f"{CLIENT}: {CLAIM} of generation 2222222222222222, by bpf"
    assert lines[-1].endswith(f"(generation 0123456789abcdef, {CLAIM}: window set, algorithm waiting)")

    (other,) = bpf_daemon.ask("why", peer=UNCLAIMED).document["connections"]
    assert (other["given"], other["cwnd"]) == (None, 10)
