"""A host for steering: its own BPF file system, a cgroup of its own, and two network namespaces."""

import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import pytest
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.bpf import BpfBackend
from tidegate_edge.steer.bpf.cgroup import root_of_cgroups
from tidegate_edge.steer.claims import Settings

SERVER4, SERVER6 = "192.0.2.1", "2001:db8::1"
LISTED = {"198.51.100.0/24": "198.51.100.7", "2001:db8:5:100::/56": "2001:db8:5:1ff::7"}
UNLISTED = ("203.0.113.7", "2001:db8:6::7")
LOADER = """
import os, sys, time
from ipaddress import ip_network
from pathlib import Path
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.bpf import BpfBackend
from tidegate_edge.steer.claims import Settings
backend = BpfBackend(Path(sys.argv[1]), Path(sys.argv[2]))
backend.attach()
backend.apply("0123456789abcdef", {ip_network("198.51.100.0/24"): Settings("bbr", 33, None, 100_000)})
print("ready", flush=True)
time.sleep(600)
"""
ENTER_CGROUP = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


def run(*argv):
    done = subprocess.run([str(each) for each in argv], text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def awaits(condition, seconds=60):
    """Poll until it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


@dataclass(frozen=True)
class Ground:
    """Where a test steers.

    Attributes:
        name: of the server's network namespace; its client's ends in `c`.
        cgroup: whose sockets are steered.
        pins: in a BPF file system that goes with the test.
        told: what the backend told.
    """

    name: str
    cgroup: Path
    pins: Path
    told: list[str] = field(default_factory=list)

    def awaits(self, condition):
        awaits(condition)

    def backend(self, **options):
        return BpfBackend(self.cgroup, self.pins, tell=self.told.append, **options)

    def argv(self, *argv):
        """A command in the cgroup and the server's namespace."""
        # Not `ip netns exec`, which hides the cgroups behind a /sys of its own.
        enter = ["nsenter", f"--net=/run/netns/{self.name}", "sh", "-c", ENTER_CGROUP, self.cgroup]
        return [str(each) for each in (*enter, *argv)]

    @contextmanager
    def running(self, *argv, **options):
        process = subprocess.Popen(self.argv(*argv), **options)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def connect(self, source, port=80):
        """From a client's address to the server; waits until it listens."""
        return awaits(lambda: self.connected(source, port))

    def connected(self, source, port):
        """The connection, or None where nobody listens."""
        with inside(f"{self.name}c"):
            connection = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
        connection.settimeout(60)
        connection.bind((source, 0))
        try:
            connection.connect((SERVER6 if ":" in source else SERVER4, port))
        except ConnectionRefusedError:
            connection.close()
            return None
        return connection

    def client_has(self, address):
        run("ip", "-n", f"{self.name}c", "address", "add", address, "dev", "v0")

    def seen(self, connection):
        """The words of `ss -ti` in the server's namespace about a client's connection."""
        address, port = connection.getsockname()[:2]
        said = run("ip", "netns", "exec", self.name, "ss", "-tinHO", "dport", "=", f":{port}")
        (line,) = [
            each
            for each in said.splitlines()
            if f"{address}]:{port} " in each or f"{address}:{port} " in each
        ]
        return line.split()

    def window_and_algorithm(self, connection):
        words = self.seen(connection)
        (window,) = [int(each.partition(":")[2]) for each in words if each.startswith("cwnd:")]
        (algorithm,) = {"cubic", "bbr", "reno"} & set(words)
        return window, algorithm


@pytest.fixture
def ground(tmp_path):
    name = f"tsb{os.getpid()}"
    cgroup = root_of_cgroups() / f"tidegate-{name}"
    bpf = tmp_path / "bpf"
    bpf.mkdir()
    undo: list[Callable[[], object]] = []
    try:
        run("mount", "-t", "bpf", "bpf", bpf)
        undo.append(lambda: run("umount", "-l", bpf))
        cgroup.mkdir()
        undo.append(lambda: awaits(lambda: emptied(cgroup)))
        for each in (name, f"{name}c"):
            run("ip", "netns", "add", each)
            undo.append(lambda each=each: run("ip", "netns", "del", each))
            run("ip", "-n", each, "link", "set", "lo", "up")
        connect_namespaces(name)
        yield Ground(name, cgroup, bpf / "tidegate")
    finally:
        for each in reversed(undo):
            each()


def emptied(cgroup):
    """Remove the cgroup, once the processes that were killed in it are gone."""
    try:
        cgroup.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def connect_namespaces(name):
    run(*f"ip link add v0 netns {name} type veth peer name v0 netns {name}c".split())
    sources = [*LISTED.values(), *UNLISTED]
    for namespace, addresses in (
        (name, [f"{SERVER4}/24", f"{SERVER6}/64"]),
        (
            f"{name}c",
            ["192.0.2.2/24", "2001:db8::2/64", *(f"{each}/{128 if ':' in each else 32}" for each in sources)],
        ),
    ):
        for each in addresses:
            run(
                "ip",
                "-n",
                namespace,
                "address",
                "add",
                each,
                "dev",
                "v0",
                *(["nodad"] if ":" in each else []),
            )
        run("ip", "-n", namespace, "link", "set", "v0", "up")
    # What a connection starts with is the route's to say: the host's default stays as it is.
    for family, gateway in (("-4", "192.0.2.2"), ("-6", "2001:db8::2")):
        run("ip", "-n", name, family, *f"route add default via {gateway} congctl cubic".split())


@pytest.fixture
def settings():
    """bbr from 100 KB on and a window of 33 segments for the listed prefixes."""
    return {ip_network(prefix): Settings("bbr", 33, None, 100_000) for prefix in LISTED}


@pytest.fixture
def snd_wnd():
    """The window that a connection's peer offered, in bytes (tcpi_snd_wnd of struct tcp_info)."""
    return lambda connection: struct.unpack_from("=I", connection.getsockopt(6, 11, 232), 228)[0]


@pytest.fixture
def backend(ground, settings):
    made = ground.backend()
    made.attach()
    made.apply("0123456789abcdef", settings)
    return made


@pytest.fixture
def loader():
    """A program that attaches and applies to the cgroup and pins that it is given, says `ready`, and stays."""
    return LOADER
