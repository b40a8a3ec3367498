"""The daemon's socket: who may ask, how much, and what the service manager hears."""

import contextlib
import grp
import json
import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from tidegate_edge.agent.ask import ask
from tidegate_edge.agent.daemon import MOST_CONVERSATIONS
from tidegate_edge.errors import MISSING_PART, Failure

pytestmark = pytest.mark.root
CLAIM = "198.18.7.0/24"
NOBODY = 65534


@contextlib.contextmanager
def somebody(uid, gid):
    """This process with another's credentials, for the length of a question."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.fixture
def place():
    """A socket's path in a directory that everyone may enter."""
    with tempfile.TemporaryDirectory(prefix="tga-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "agent.sock"


@pytest.fixture
def running(daemon):
    """A daemon that holds a claim."""
    daemon.start()
    daemon.host.steer((CLAIM, {"initcwnd": 31}))
    daemon.apply()
    return daemon


@pytest.fixture
def public(daemon, place):
    """A daemon at a public place, with readers."""
    daemon.socket = place
    daemon.options = (*daemon.options, "--socket", place, "--group", grp.getgrgid(NOBODY).gr_name)
    daemon.start()
    return daemon


def steering(daemon):
    daemon.host.steer((CLAIM, {"initcwnd": 32}), generation="2222222222222222")
    return daemon.host.directory / "steering.json"


def test_members_of_the_group_may_read_and_not_change(public, place):
    path = steering(public)
    public_file = place.with_name("steering.json")
    public_file.write_bytes(path.read_bytes())
    with somebody(NOBODY, NOBODY):
        assert ask(place, "status").document["generation"] is None
        refusals = [ask(place, command) for command in ("flush", "confirm", "rollback")]
        refusals += [ask(place, command, {"dry_run": True}, public_file) for command in ("apply", "flush")]
    assert [each.exit_code for each in refusals] == [MISSING_PART] * 5
    assert all(f"user {NOBODY} may not" in each.message for each in refusals)
    assert ask(place, "apply", {}, path).exit_code == 0
    assert public.host.settings(CLAIM) == {"initcwnd": 32}


@pytest.mark.usefixtures("public")
def test_others_are_not_let_in_whatever_the_sockets_mode(place):
    with somebody(NOBODY, 1), pytest.raises(Failure, match="Permission denied"):
        ask(place, "status")
    place.chmod(0o666)
    with somebody(NOBODY, 1):
        refused = ask(place, "status")
    assert (refused.exit_code, refused.document) == (MISSING_PART, None)


def test_a_directory_that_may_not_be_entered_is_a_failure_too(place):
    place.parent.chmod(0o700)
    with somebody(NOBODY, NOBODY), pytest.raises(Failure, match="Permission denied") as refused:
        ask(place, "status")
    assert refused.value.exit_code == MISSING_PART


@pytest.mark.parametrize(
    "request_bytes",
    [b"nonsense\n", b"[]\n", b'{"command": 1, "arguments": {}}\n', b"[" * 50_000 + b"\n", b"x" * 200_000],
    ids=["no JSON", "no object", "no word", "nested", "endless"],
)
def test_what_is_no_request_gets_an_answer_and_harms_nobody(running, request_bytes):
    with connected(running) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request_bytes)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1 << 16):
                answer += data
        assert not answer or json.loads(answer)["exit_code"] == 2
    assert running.status()["matches"]


def test_those_who_say_nothing_keep_nobody_else_from_an_answer(running):
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(connected(running))
        assert running.status()["matches"]


def test_one_that_makes_room_while_it_speaks_harms_nobody(running):
    with contextlib.ExitStack() as held:
        (oldest, *_) = [held.enter_context(connected(running)) for _ in range(MOST_CONVERSATIONS)]
        running.awaits(lambda: not_accepted(running.host) == 0)
        # Both are ready when the daemon looks next: the one that is too many, and the oldest.
        running.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.process.pid, os.WSTOPPED | os.WNOWAIT)
        held.enter_context(connected(running))
        oldest.sendall(b"x")
        running.process.send_signal(signal.SIGCONT)
        assert running.status()["matches"]


def not_accepted(host):
    """Connections that wait in the queue of the namespace's one listener (Recv-Q)."""
    (line,) = host.inside("ss", "-xlnH").stdout.splitlines()
    return int(line.split()[2])


def connected(daemon):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(daemon.socket))
    connection.settimeout(60)
    return connection


def test_the_service_manager_hears_that_it_is_ready_alive_and_ends(daemon):
    path = daemon.host.directory / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind(str(path))
        daemon.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "300000"}
        daemon.start()
        heard = [manager.recv(4096).decode()]
        assert heard[0].splitlines()[0] == "READY=1"
        daemon.host.steer((CLAIM, {"initcwnd": 31}))
        daemon.apply()
        while sum("WATCHDOG=1" in each for each in heard) < 3 or "0123456789abcdef" not in "".join(heard):
            heard.append(manager.recv(4096).decode())
        daemon.process.send_signal(signal.SIGTERM)
        while heard[-1] != "STOPPING=1":
            heard.append(manager.recv(4096).decode())
        assert daemon.process.wait(timeout=60) == 0
