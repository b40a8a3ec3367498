"""A daemon on a host that is short of CPU: BBR yields for new connections, and comes back when it is over.

The connection is real, and starved by being paced far below what its path was measured to carry. What the host says
of its CPUs is a file that lies over /proc/stat in the daemon's mount namespace: no test can steal a machine's CPU.
"""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tidegate_lab.link import End, link
from tidegate_lab.shape import Shape

pytestmark = pytest.mark.root
OFTEN = ("--when-starved", "cubic", "--starved-every", "200ms")
CLAIMED = "198.51.100.0/24"
PATH = Shape(rate_bps=20_000_000, delay_ms=10)  # a queue without end: no loss to repair

RECEIVER = """
import socket
listener = socket.create_server(("198.18.9.2", 8080))
print("ready", flush=True)
connection, _ = listener.accept()
while connection.recv(1 << 16):
    pass
"""
SENDER = """
import socket, sys, threading
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
connection.connect(("198.18.9.2", 8080))
def send():
    while True:
        connection.sendall(bytes(1 << 16))
threading.Thread(target=send, daemon=True).start()
SO_MAX_PACING_RATE = 47  # include/uapi/asm-generic/socket.h
for line in sys.stdin:
    connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(line))
"""


class Cpus:
    """The files that lie over the host's counters; `pass_by` adds to them, ticks of 10 ms."""

    def __init__(self, directory):
        self.stat = directory / "stat"
        self.nothing = directory / "nothing"
        self.nothing.touch()
        self.idle = self.stolen = 0
        self.pass_by(idle=1)

    def pass_by(self, idle=0, stolen=0):
        self.idle += idle
        self.stolen += stolen
        text = f"cpu  0 0 0 {self.idle:020} 0 0 0 {self.stolen:020} 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n"
        with self.stat.open("r+" if self.stat.exists() else "w") as file:
            file.write(text)  # of one length, and never cut: a reader sees the one or the other

    def covers(self):
        """What to run first in a mount namespace of one's own."""
        over = f"mount --bind {self.stat} /proc/stat"
        for path in ("/proc/pressure/cpu", "/proc/schedstat"):
            over += f"; test ! -e {path} || mount --bind {self.nothing} {path}"
        return ["unshare", "--mount", "sh", "-ec", f'{over}; exec "$@"', "sh"]


@contextmanager
def program(namespace, text, **options):
    argv = ["ip", "netns", "exec", namespace, sys.executable, "-c", text]
    with subprocess.Popen(argv, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def cpus(daemon, tmp_path, monkeypatch):
    made, argv = Cpus(tmp_path), daemon.argv
    monkeypatch.setattr(daemon, "argv", lambda *more: [*made.covers(), *argv(*more)])
    return made


@pytest.fixture
def starved(host):
    """A connection that BBR keeps far below its path; `host` serves 198.18.9.2 by it."""
    near = End(host.name, "wan", ("198.18.9.1/32",), ("198.18.9.2/32",))
    far = End(host.peer, "wan", ("198.18.9.2/32",), ("198.18.9.1/32",))
    with (
        link(near, far, PATH, Shape(delay_ms=10)),
        program(host.peer, RECEIVER, stdout=subprocess.PIPE) as receiver,
    ):
        assert receiver.stdout.readline() == "ready\n"
        with program(host.name, SENDER, stdin=subprocess.PIPE) as sender:
            yield sender


def sending(host):
    return [word for words in host.connections("198.18.9.1").values() for word in words]


def starve(daemon, sender):
    """Pace so slowly that the last estimate stays, with nothing in flight; again where BBR was in another state."""

    def pace(rate, shown):
        sender.stdin.write(f"{rate}\n")
        sender.stdin.flush()
        daemon.awaits(lambda: any(word.endswith(shown) for word in sending(daemon.host)))

    def steady():
        words = sending(daemon.host)
        return any(word.endswith("cwnd_gain:2)") for word in words) and "app_limited" not in words

    def frozen():
        pace(10**9, "/8000000000bps")
        daemon.awaits(steady)
        pace(1, "/8bps")
        daemon.awaits(lambda: not any(word.startswith("unacked:") for word in sending(daemon.host)))
        return steady()

    daemon.awaits(frozen)


def algorithm_of_claim(daemon):
    return daemon.host.settings(CLAIMED)["congestion"]


def test_bbr_yields_while_the_host_is_short_of_cpu_and_comes_back(daemon, cpus, starved):
    host = daemon.host

    def passes(condition, **ticks):
        def judged():
            cpus.pass_by(**ticks)
            return condition()

        daemon.awaits(judged)

    def fallen_back():
        return (daemon.status()["starved"] or {}).get("fallen_back", False)

    host.steer((CLAIMED, {"congestion_control": "bbr", "initcwnd": 20}), ("203.0.113.0/24", {"initcwnd": 30}))
    daemon.start(*OFTEN)
    daemon.apply()
    starve(daemon, starved)

    assert algorithm_of_claim(daemon) == "bbr"
    passes(fallen_back, idle=90, stolen=10)
    status = daemon.status()
    assert status["matches"]
    assert status["starved"]["instead"] == "cubic"
    assert status["starved"]["times"] == 1
    assert status["starved"]["last"]["sockets"] == {"bbr": 1, "starved": 1}
    assert host.settings(CLAIMED) == {"congestion": "cubic", "initcwnd": 20}
    assert "congestion" not in host.settings("203.0.113.0/24")
    # What stands for BBR is what is wanted now: a stranger's change is mended to it.
    assert status["drift"]["repaired"] == 0
    host.ip(f"route del {CLAIMED}")
    passes(lambda: daemon.status()["drift"]["repaired"] == 1, idle=90, stolen=10)
    assert algorithm_of_claim(daemon) == "cubic"

    passes(lambda: not fallen_back(), idle=100)
    assert algorithm_of_claim(daemon) == "bbr"
    assert daemon.status()["starved"]["times"] == 1


def test_a_host_that_is_short_of_cpu_keeps_bbr_where_no_connection_shows_it(daemon, cpus):
    host = daemon.host
    host.steer((CLAIMED, {"congestion_control": "bbr"}))
    daemon.start(*OFTEN)
    daemon.apply()

    def asked():
        cpus.pass_by(idle=50, stolen=50)
        last = (daemon.status()["starved"] or {}).get("last")
        return last and last["host"]["stolen_ppm"] == 500_000 and last["sockets"] == {"bbr": 0, "starved": 0}

    for _ in range(5):
        daemon.awaits(asked)
    assert daemon.status()["starved"]["times"] == 0
    assert algorithm_of_claim(daemon) == "bbr"


def test_nobody_looks_where_nothing_may_take_bbrs_place_or_none_says_bbr(daemon):
    host = daemon.host
    host.steer((CLAIMED, {"congestion_control": "cubic"}))
    daemon.start(*OFTEN)
    daemon.apply()
    assert daemon.status()["starved"] is None
    daemon.end(signal.SIGTERM)
    host.steer((CLAIMED, {"congestion_control": "bbr"}))
    daemon.start(*OFTEN, "--when-starved", "nothing")
    daemon.apply()
    assert daemon.status()["starved"] is None
