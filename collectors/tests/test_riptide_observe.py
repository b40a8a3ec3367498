"""What is observed is what the sockets themselves say, and damaged datagrams neither crash nor invent connections."""

import os
import random
import socket
import struct
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from ipaddress import ip_network
from pathlib import Path

import numpy as np
import pytest
from tidegate_edge.errors import Failure
from tidegate_edge.riptide import Observer, State, claims, learn, observe, restarts_after_idle
from tidegate_edge.riptide.filter import select_remote
from tidegate_edge.riptide.published import learn_as_published, list_sockets, windows_by_host
from tidegate_edge.riptide.state import Mean
from tidegate_edge.riptide.windows import fold
from tidegate_edge.sockets.capture import read_capture
from tidegate_edge.sockets.decode import find_sockets
from tidegate_edge.sockets.netlink import SocketDiag
from tidegate_edge.steer.steering import Learn

BUFFERS = int(os.environ.get("TIDEGATE_FUZZ", "2000"))
CAPTURES = Path(__file__).parents[3] / "shared" / "data" / "netlink"
SO_COOKIE = 57
TCP_INFO = socket.TCP_INFO
PATIENCE_S = 60


@contextmanager
def pair(remote):
    """Two ends of a connection; the second has `remote` as its remote address."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as near:
        near.bind((remote, 0))
        near.connect(listener.getsockname())
        far = listener.accept()[0]
        with far:
            yield near, far


def cookie(end):
    return struct.unpack("=Q", end.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))[0]


def info(end):
    """cwnd, ssthresh, mss, retransmitted, acked: struct tcp_info of include/uapi/linux/tcp.h."""
    raw = end.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 192)
    (mss,) = struct.unpack_from("=I", raw, 16)
    ssthresh, cwnd = struct.unpack_from("=II", raw, 76)
    (retransmitted,) = struct.unpack_from("=I", raw, 100)
    (acked,) = struct.unpack_from("=Q", raw, 120)
    return cwnd, ssthresh, mss, retransmitted, acked


def pass_over(near, far, size):
    """Sends through the connection and waits until all is acknowledged."""
    before = info(far)[-1]
    near.settimeout(PATIENCE_S)
    for begin in range(0, size, 1 << 16):
        part = min(1 << 16, size - begin)
        far.sendall(bytes(part))
        while part:
            part -= len(near.recv(part))
    deadline = time.monotonic() + PATIENCE_S
    while info(far)[-1] < before + size:
        assert time.monotonic() < deadline


def test_the_columns_are_what_the_socket_itself_says():
    with pair("127.77.0.1") as (near, far), closing(Observer((ip_network("127.77.0.1/32"),))) as observer:
        pass_over(near, far, 3_000_000)
        found = observer.observe().connections
        here = found.where(found.cookie == cookie(far))
        assert len(here) == 1
        columns = (here.cwnd, here.ssthresh, here.mss, here.retransmitted, here.acked)
        assert tuple(int(column[0]) for column in columns) == info(far)
        assert (int(here.high[0]), int(here.low[0])) == (0, 0xFFFF << 32 | 127 << 24 | 77 << 16 | 1)


def test_a_real_connection_teaches_its_window_and_a_closed_one_is_forgotten():
    policy = Learn((ip_network("127.77.0.2/32"),), 10, 100, 1_000_000, 1_000_000, 5_000_000)
    pop = ip_network("127.77.0.2/32")
    state = State()
    with closing(Observer(policy.toward)) as observer:
        with pair("127.77.0.2") as (near, far):
            state = learn(state, observer.observe(), policy, 0)
            assert state.counts["idle"] >= 1
            deadline = time.monotonic() + PATIENCE_S
            while not claims(state, policy):  # until a busy sample was not limited by the application
                assert time.monotonic() < deadline
                pass_over(near, far, 1_000_000)
                far.setblocking(False)
                try:
                    while True:
                        far.send(bytes(1 << 16))
                except BlockingIOError:
                    far.setblocking(True)
                state = learn(state, observer.observe(), policy, 1)
                near.setblocking(False)
                try:
                    while near.recv(1 << 20):
                        pass
                except BlockingIOError:
                    near.setblocking(True)
        (window,) = claims(state, policy).values()
        assert 10 <= window <= 100
        deadline = time.monotonic() + PATIENCE_S
        while len(observer.observe().connections):
            assert time.monotonic() < deadline
        state = learn(state, observer.observe(), policy, 5_000_001)
    assert pop not in state.learned
    assert not len(state.seen.cookie)


def test_connections_beyond_the_limit_are_counted(monkeypatch):
    with pair("127.77.0.3"), closing(Observer((ip_network("127.77.0.3/32"),))) as observer:
        monkeypatch.setattr(observe, "MAX_CONNECTIONS", 0)
        seen = observer.observe()
        assert (len(seen.connections), seen.beyond) == (0, 1)
        policy = Learn((ip_network("127.77.0.3/32"),), 10, 100, 1, 1, 1)
        assert learn(State(), seen, policy, 0).counts["beyond"] == 1


def test_datagrams_that_do_not_fit_are_never_taken_for_the_whole(monkeypatch):
    monkeypatch.setattr(observe, "BUFFER_LENGTH", 256)
    with (
        pair("127.77.0.4"),
        closing(Observer((ip_network("127.77.0.4/32"),))) as observer,
        pytest.raises(Failure, match=f"{observe.ATTEMPTS} dumps of the sockets were lost"),
    ):
        observer.observe()


def words(buffer):
    return np.frombuffer(buffer + bytes(-len(buffer) % 4), "<u4")


def recorded():
    """Datagrams of real kernels, and of this one."""
    if CAPTURES.is_dir():
        for capture in sorted(CAPTURES.glob("*tcp_100_sockets.pcap")):
            yield from (bytes(datagram.data) for datagram in read_capture(capture))
    buffer, selected = bytearray(1 << 17), select_remote([ip_network("127.77.0.5/32")])
    with pair("127.77.0.5"), closing(SocketDiag()) as diag:
        ((datagram,),) = diag.dump(1 << 1, buffer, 1 << 1, selected.attribute)
        yield bytes(buffer[slice(*datagram)])


def test_damaged_datagrams_never_crash():
    draw = random.Random(5)
    whole = list(recorded())
    undamaged = observe.decode(find_sockets(words(whole[-1]), [(0, len(whole[-1]))]))
    assert len(undamaged) == 1
    policy = Learn((ip_network("0.0.0.0/0"), ip_network("::/0")), 10, 100, 500_000, 1, 1000)
    state = State()
    for turn in range(BUFFERS):
        datagram = bytearray(draw.choice(whole))
        for _ in range(draw.randint(1, 8)):
            datagram[draw.randrange(len(datagram))] = draw.randrange(256)
        del datagram[draw.randint(1, len(datagram)) :]
        sockets = find_sockets(words(bytes(datagram)), [(0, len(datagram))])
        found = observe.decode(sockets)
        assert len(found) * 88 <= len(datagram)  # nlmsghdr and inet_diag_msg: no connection without its bytes
        state = learn(state, observe.Observation(found, sockets.damaged), policy, turn)
        assert all(10 <= window <= 100 for window in claims(state, policy).values())


@pytest.mark.root
def test_slow_start_after_idle_is_read_and_not_written():
    namespace = f"tgr-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    inside = ["ip", "netns", "exec", namespace]
    program = "from tidegate_edge.riptide import restarts_after_idle; print(restarts_after_idle())"
    try:
        for value, answer in (("0", "False"), ("1", "True")):
            setting = f"net.ipv4.tcp_slow_start_after_idle={value}"
            subprocess.run([*inside, "sysctl", "-qw", setting], check=True)
            asked = subprocess.run(
                [*inside, sys.executable, "-c", program], check=True, capture_output=True, text=True
            )
            assert asked.stdout.strip() == answer
    finally:
        subprocess.run(["ip", "netns", "delete", namespace], check=True)


def test_where_the_kernel_does_not_say_nothing_is_said(tmp_path):
    assert restarts_after_idle(tmp_path / "missing") is None


def test_the_published_script_sees_the_windows_that_the_sockets_have():
    with pair("127.77.0.6") as (near, far):
        pass_over(near, far, 500_000)
        seen = windows_by_host(list_sockets())
        assert seen[ip_network("127.77.0.6/32")] == Mean(info(far)[0], 1)


LISTED = """\
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      0      198.51.100.1:443     192.0.2.1:40001 timer:(keepalive,1min,0)
\t cubic wscale:7,7 rto:204 rtt:0.1/0.05 mss:1448 cwnd:20 ssthresh:15 bytes_acked:9
LISTEN 0     128    0.0.0.0:443          0.0.0.0:*
\t cubic cwnd:10
ESTAB 0      0      [::ffff:198.51.100.1]:443 [::ffff:192.0.2.1]:40002
\t bbr wscale:7,7 rto:204 cwnd:41 app_limited
CLOSE-WAIT 0 0      198.51.100.1:443     192.0.2.9:1
\t cubic cwnd:10
ESTAB 0      0      [2001:db8::1]:443    [2001:db8::2]:40003
\t cubic rto:204 cwnd:300
ESTAB 0      0      [fe80::1]%eth0:443   [fe80::2]%eth0:40003
\t cubic rto:204 cwnd:7
"""


def test_the_published_script_averages_every_window_and_clamps():
    policy = Learn((), 10, 100, 500_000, 1_000_000, 90_000_000)
    one, two = ip_network("192.0.2.1/32"), ip_network("2001:db8::2/128")
    state = learn_as_published(State(), LISTED, policy, 0)
    assert {h: each.window for h, each in state.learned.items()} == {
        one: 30,
        two: 100,
        ip_network("fe80::2/128"): 10,
    }
    later = learn_as_published(state, LISTED.replace("cwnd:20", "cwnd:80"), policy, 1)
    assert later.learned[one].window == 45  # half of 30, half of 60.5
    assert learn_as_published(later, "", policy, 90_000_001).learned == {}
    assert fold(state, {}, policy, 1).learned == state.learned
