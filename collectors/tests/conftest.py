"""Real sockets to poll; and a host in a network namespace, with a peer that answers for its clients."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tidegate_edge.agent.ask import ask
from tidegate_edge.steer.bpf.cgroup import root_of_cgroups

AGENT = Path(sys.executable).with_name("tidegate-agent")


def run(*argv, check=True, **options):
    result = subprocess.run(
        [str(each) for each in argv], text=True, capture_output=True, check=False, **options
    )
    assert not check or result.returncode == 0, f"{argv}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result


def awaits(condition, seconds=60, otherwise=lambda: "not within the time"):
    """Poll until it is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.02)


@pytest.fixture
def connections():
    """Some sockets of this machine to poll."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = [socket.create_connection(server.getsockname()) for _ in range(20)]
        ends += [server.accept()[0] for _ in ends]
        yield
        for end in ends:
            end.close()


@dataclass(frozen=True)
class Host:
    """A network namespace, its peer's, and the agent's files."""

    name: str
    peer: str
    directory: Path

    def inside(self, *argv, **options):
        return run("ip", "netns", "exec", self.name, *argv, **options)

    def ip(self, words):
        return self.inside("ip", *words.split())

    def routes(self, prefix=None, family=4):
        """As `ip` shows the main table, apart from what the kernel adds by itself."""
        found = json.loads(self.ip(f"-N -j -{family} -d route show table main").stdout)
        return [each for each in found if each["dst"] == prefix] if prefix else found

    def own(self, prefix, family=4):
        (route,) = [each for each in self.routes(prefix, family) if each["protocol"] == "201"]
        return route

    def settings(self, prefix, family=4):
        return self.own(prefix, family)["metrics"][0]

    def steer(self, *claims, default=None, text=None, generation="0123456789abcdef", learn=None):
        document = {
            "schema_version": 1,
            "generation": generation,
            "default_congestion_control": default,
            "claims": [{"prefix": prefix, **settings} for prefix, settings in claims],
            "riptide": learn,
        }
        (self.directory / "steering.json").write_text(json.dumps(document) if text is None else text)

    def argv(self, command):
        files = ["--state-dir", self.directory / "state"]
        if command in {"apply", "status", "run"}:
            files += ["--steering", self.directory / "steering.json"]
        return [AGENT, command, *files]

    def agent(self, command, *options, under=(), check=True):
        return self.inside(*under, *self.argv(command), *options, check=check)

    def apply_at_once(self, times):
        """As many runs of `apply`, all started before any is awaited."""
        argv = ["ip", "netns", "exec", self.name, *self.argv("apply"), "--json"]
        started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(times)]
        return [json.loads(each.communicate(timeout=60)[0]) for each in started]

    def apply(self, *options, exit_code=0):
        result = self.agent("apply", "--json", *options, check=False)
        assert result.returncode == exit_code, result.stdout + result.stderr
        return json.loads(result.stdout)

    def connections(self, local):
        """What `ss` says of each established connection, in words, by the peer's address."""
        lines = self.inside("ss", "-tinHO", "state", "established", "src", local).stdout.splitlines()
        return {line.split()[3].rsplit(":", 1)[0]: line.split() for line in lines}

    def peer_answers_for(self, address):
        run("ip", "-n", self.peer, "address", "add", f"{address}/32", "dev", "up0")

    def awaits(self, condition):
        awaits(condition)

    def links_carry(self):
        return not [
            each for family in (4, 6) for each in self.routes(family=family) if "linkdown" in each["flags"]
        ]

    def algorithm(self):
        return self.inside("cat", "/proc/sys/net/ipv4/tcp_congestion_control").stdout.strip()


@pytest.fixture
def host(tmp_path):
    """A host with a default route by `up0`, a second link `up1`, and a peer behind both."""
    name = f"tga-{os.getpid()}"
    made = Host(name, f"{name}-peer", tmp_path)
    try:
        for each in (made.name, made.peer):
            run("ip", "netns", "add", each)
            run("ip", "-n", each, "link", "set", "lo", "up")
        for number, link in enumerate(("up0", "up1")):
            ends = f"{link} netns {made.name} type veth peer name {link} netns {made.peer}"
            run("ip", "link", "add", *ends.split())
            for side, each in enumerate((made.peer, made.name), start=1):
                run("ip", "-n", each, "address", "add", f"192.0.2.{64 * number + side}/26", "dev", link)
                run("ip", "-n", each, "address", "add", f"2001:db8:{number}::{side}/64", "dev", link, "nodad")
                # No link-local routes: the kernel would add them at a time of its own.
                run("ip", "-n", each, "link", "set", link, "up", "addrgenmode", "none")
        made.ip("route add default via 192.0.2.1")
        made.ip("-6 route add default via 2001:db8::1")
        made.awaits(made.links_carry)
        yield made
    finally:
        for each in (made.name, made.peer):
            run("ip", "netns", "del", each, check=False)


@dataclass
class Daemon:
    """A real `tidegate-agent run` in a host's namespace, started with the same files each time."""

    host: Host
    options: tuple
    environment: dict
    socket: Path
    pins: Path
    under: tuple = ()
    process: subprocess.Popen | None = None

    @property
    def log(self):
        return self.host.directory / "daemon.log"

    def argv(self, *more):
        # Not `ip netns exec`, which hides the cgroups and the BPF file system.
        inside = ["nsenter", f"--net=/run/netns/{self.host.name}"]
        return [str(each) for each in (*self.under, *inside, *self.host.argv("run"), *self.options, *more)]

    def start(self, *more):
        """Start it, and wait until it answers."""
        with self.log.open("a") as log:
            environment = {**os.environ, **self.environment}
            self.process = subprocess.Popen(self.argv(*more), stderr=log, env=environment)
        self.awaits(lambda: self.ask("why", peer="192.0.2.1") or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def ask(self, command, file=None, **arguments):
        """Its answer, or None where it does not listen; as a command asks, without a process for each question."""
        return ask(self.socket, command, arguments, file)

    def apply(self, *, exit_code=0, **arguments):
        answer = self.ask("apply", self.host.directory / "steering.json", **arguments)
        assert answer.exit_code == exit_code, answer
        return answer.document if exit_code == 0 else answer.message

    def status(self):
        return self.ask("status").document

    def states(self):
        return {each["prefix"]: each["state"] for each in self.status()["claims"]}

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def awaits(self, condition):
        awaits(condition, otherwise=self.log.read_text)


@pytest.fixture
def daemon(host):
    """A daemon that steers by routes whatever ails the machine's processors, not started yet."""
    socket = host.directory / "state" / "agent.sock"
    pins = host.directory / "bpf" / "tidegate"
    options = ("--backend", "routes", "--pins", pins, "--when-starved", "nothing")
    made = Daemon(host, options, {}, socket, pins)
    yield made
    if made.process and made.process.poll() is None:
        made.process.kill()
        made.process.wait(timeout=60)


@pytest.fixture
def cgroup():
    """A cgroup of its own to attach to, so that no other process of this machine is steered."""
    made = root_of_cgroups() / f"tidegate-{os.getpid()}"
    made.mkdir()
    yield made
    awaits(lambda: removed(made))


def removed(cgroup):
    """Whether the cgroup is gone, which it can be once the processes that were killed in it are."""
    try:
        cgroup.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture
def bpf_files(tmp_path):
    """A BPF file system that goes with the test."""
    where = tmp_path / "bpf"
    where.mkdir()
    run("mount", "-t", "bpf", "bpf", where)
    yield where
    run("umount", "-l", where)


@pytest.fixture
def bpf_daemon(daemon, cgroup, bpf_files):
    """A daemon that steers a cgroup of its own by BPF, started."""
    assert daemon.pins.parent == bpf_files
    daemon.start("--backend", "bpf", "--cgroup", cgroup)
    return daemon


@pytest.fixture
def entering(cgroup):
    """The words before a command by which it runs in the cgroup."""
    return ("sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup))


SENDER = """
import socket, sys, threading
def send(connection):
    try:
        while True:
            connection.sendall(bytes(1 << 16))
    except OSError:
        pass
listener = socket.create_server(("", 8080))
print("ready", flush=True)
while True:
    threading.Thread(target=send, args=(listener.accept()[0],), daemon=True).start()
"""
# It reads slowly: the machine is spared, and the sender always has more to send, as one that is not limited by its
# application.
RECEIVER = """
import os, socket, sys, threading
pause = threading.Event()
connection = socket.create_connection((sys.argv[3], 8080), source_address=(sys.argv[1], 0))
total = 0
with open(sys.argv[2], "wb", 0) as file:
    while data := connection.recv(1 << 16):
        total += len(data)
        os.pwrite(file.fileno(), b"%020d" % total, 0)
        pause.wait(0.005)
"""


@dataclass(frozen=True)
class Transfer:
    """A download that runs on and on, to a client of the claimed prefix."""

    host: Host
    count: Path
    process: subprocess.Popen

    def flows(self):
        """Some more bytes arrive from now on."""
        before = self.received()
        awaits(
            lambda: self.received() >= before + (1 << 17) or self.process.poll() is not None,
            otherwise=lambda: "the transfer stands still",
        )
        assert self.process.poll() is None
        return True

    def received(self):
        return int(self.count.read_bytes() or 0) if self.count.exists() else 0


@pytest.fixture
def transfer(host, tmp_path):
    """A transfer from the host to 198.18.7.1, which the peer answers for."""
    host.peer_answers_for("198.18.7.1")
    inside = ["ip", "netns", "exec"]
    count = tmp_path / "received"
    sender = subprocess.Popen(
        [*inside, host.name, sys.executable, "-c", SENDER], stdout=subprocess.PIPE, text=True
    )
    receiver = None
    try:
        assert sender.stdout.readline() == "ready\n"
        argv = [*inside, host.peer, sys.executable, "-c", RECEIVER, "198.18.7.1", str(count), "192.0.2.2"]
        receiver = subprocess.Popen(argv)
        made = Transfer(host, count, receiver)
        assert made.flows()
        yield made
    finally:
        for each in (receiver, sender):
            if each:
                each.kill()
                each.wait(timeout=60)
        sender.stdout.close()
