"""Algorithms as BPF programs: chosen like the kernel's own, and gone with who registered them."""

import hashlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tidegate_edge.errors import MISSING_PART
from tidegate_edge.libbpf.library import Unavailable
from tidegate_lab.algorithms import ALGORITHMS, RAISE, WRAPPED, registered, sender
from tidegate_lab.kernel import inside_namespace
from tidegate_lab.link import End, link
from tidegate_lab.namespaces import namespace
from tidegate_lab.shape import Shape

pytestmark = pytest.mark.root
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
SENDER, RECEIVER = "198.18.30.1", "198.18.31.1"
PATH = Shape(rate_bps=20_000_000, delay_ms=10)
SO_MAX_PACING_RATE = 47  # include/uapi/asm-generic/socket.h
UNLIMITED = 10**9
PACING_RATE = struct.Struct("=104xQ")  # struct tcp_info, tcpi_pacing_rate, bytes per second
HOLDER = """
import sys
from tidegate_lab.algorithms import registered
with registered():
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True, scope="module")
def possible():
    try:
        with registered():
            pass
    except (Unavailable, RuntimeError) as reason:
        pytest.skip(str(reason))


def available():
    return AVAILABLE.read_text().split()


def awaits(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def choose(connection, name):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def chosen(connection):
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname(), timeout=60)
        return near, listener.accept()[0]


def arrives(near, far, content):
    """Send in a thread, receive here."""
    thread = threading.Thread(target=near.sendall, args=(content,))
    thread.start()
    received = bytearray()
    while len(received) < len(content):
        read = far.recv(1 << 18)
        assert read
        received += read
    thread.join()
    return hashlib.sha256(received).digest() == hashlib.sha256(content).digest()


@contextmanager
def holder():
    argv = [sys.executable, "-c", HOLDER]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_connection_that_chooses_it_delivers_every_byte(name):
    with registered() as senders:
        near, far = pair()
        with near, far:
            choose(near, name)
            assert chosen(near) == name
            assert arrives(near, far, os.urandom(4_000_000))
            assert sender(senders, near.fileno()).acks > 0
            assert sender(senders, far.fileno()) is None


def test_it_is_gone_with_its_block_and_can_be_had_again():
    before = available()
    for _ in range(2):
        with registered():
            assert set(available()) == {*before, *ALGORITHMS}
        assert available() == before
    with socket.socket() as connection, pytest.raises(FileNotFoundError):
        choose(connection, RAISE)


def test_a_killed_process_leaves_nothing_but_connections_that_go_on():
    before = available()
    near, far = pair()
    with near, far:
        with holder() as process:
            choose(near, RAISE)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
            awaits(lambda: available() == before)
        assert chosen(near) == RAISE
        assert arrives(near, far, os.urandom(4_000_000))


def test_a_second_process_is_told_that_the_name_is_taken():
    with (
        holder(),
        pytest.raises(Unavailable, match="another process holds the algorithm bbr_wrapped") as told,
        registered(),
    ):
        pass
    assert told.value.exit_code == MISSING_PART


def test_only_those_who_administer_the_network_choose_it():
    choice = f"import socket; socket.socket().setsockopt(6, 13, {RAISE.encode()!r})"
    with registered():
        argv = ["setpriv", "--bounding-set", "-all", sys.executable, "-c", choice]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert "PermissionError" in done.stderr


@pytest.mark.parametrize(("name", "raises"), [(WRAPPED, False), (RAISE, True)])
def test_pacing_is_raised_while_less_is_in_flight_than_the_path_holds_and_never_beyond_the_sockets_limit(
    name, raises
):
    limit = PATH.rate_bps // 8 // 5
    with (
        registered() as senders,
        namespace("near") as near,
        namespace("far") as far,
        link(
            End(near, "far", (f"{SENDER}/32",), (f"{RECEIVER}/32",)),
            End(far, "near", (f"{RECEIVER}/32",), (f"{SENDER}/32",)),
            PATH,
            Shape(delay_ms=10),
        ),
    ):
        with inside_namespace(far):
            listener = socket.create_server((RECEIVER, 0))
        with inside_namespace(near):
            connection = socket.socket()
        with listener, connection:
            connection.connect(listener.getsockname())
            choose(connection, name)
            receiving = threading.Thread(target=swallow, args=(listener.accept()[0],))
            sending = threading.Thread(target=pour, args=(connection,))
            receiving.start()
            sending.start()

            def known():
                return sender(senders, connection.fileno())

            def slowed():
                """The path stays as it was measured, for ten round trips, while the socket may send a fifth."""
                connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, UNLIMITED)
                acks = known().acks if known() else 0
                awaits(lambda: known() and known().acks > acks + 500)
                connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, limit)
                before = known()
                awaits(lambda: known().acks > before.acks + 100)
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, PACING_RATE.size)
                assert PACING_RATE.unpack(info)[0] <= limit
                return known().raised > before.raised

            try:
                if raises:
                    awaits(slowed)
                else:
                    assert not slowed()
                    assert known().raised == 0
            finally:
                connection.shutdown(socket.SHUT_RDWR)
                sending.join()
                receiving.join()


def swallow(connection):
    with closing(connection):
        while connection.recv(1 << 18):
            pass


def pour(connection):
    try:
        while True:
            connection.sendall(bytes(1 << 16))
    except OSError:
        return
