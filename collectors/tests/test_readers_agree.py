"""Two readers, one row: what BPF and netlink say of the same sockets, field by field."""

import errno
import os
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tidegate_edge.preflight import version_of
from tidegate_edge.schemas.rows import ROW, read_rows
from tidegate_edge.sockets import iterator
from tidegate_edge.sockets import netns as namespaces
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.iterator import BpfReader
from tidegate_edge.sockets.reader import NetlinkReader
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sockets.traffic import INTRA_POP, NEAR, Classifier

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        version_of(os.uname().release) < (5, 12), reason="iterators give no cookies before Linux 5.12"
    ),
]

WHOLE = Origin("ams1", "edge1", FULL)
CUT = Origin("ams1", "edge1", classifier=Classifier([(network, INTRA_POP) for network in NEAR]))
RUNNING = ("busy_time_us", "rwnd_limited_us", "sndbuf_limited_us")
OWNER = 4321
STATES = {1, 2, 5, 8}  # ESTABLISHED, SYN_SENT, FIN_WAIT2, CLOSE_WAIT

# Losses, marks and what is not asked for: loopback shows none.
SILENT = {
    *("ca_state", "lost", "retrans", "total_retrans", "bytes_retrans", "retransmits", "delivered_ce"),
    *("sndbuf_limited_us", "remote_hash"),
}

CHURN = """
import socket
with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        ends = []
        for _ in range(50):
            ends.append(socket.create_connection(listener.getsockname()))
            ends.append(listener.accept()[0])
        for end in ends:
            end.close()
"""


@pytest.fixture
def netns():
    name = f"tidegate-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture(params=iterator.PROGRAMS)
def readers(netns, request, monkeypatch):
    first = sorted(iterator.PROGRAMS, key=request.param.__ne__)
    monkeypatch.setattr(iterator, "PROGRAMS", first)
    with ExitStack() as closing:
        opened = {"bpf": BpfReader(netns), "netlink": NetlinkReader(netns)}
        for reader in opened.values():
            closing.callback(reader.close)
        yield opened


def pair(family, bind, connect, algorithm):
    dual = bind == "::"
    with socket.create_server((bind, 0), family=family, dualstack_ipv6=dual) as listener:
        near = socket.create_connection((connect, listener.getsockname()[1]))
        far = listener.accept()[0]
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
    near.sendall(b"x" * 50_000)
    assert len(far.recv(50_000, socket.MSG_WAITALL)) == 50_000
    far.sendall(b"y" * 700)
    assert len(near.recv(700, socket.MSG_WAITALL)) == 700
    return near, far


def fill(end):
    end.setblocking(False)
    with suppress(BlockingIOError):
        while end.send(b"z" * 65536):
            pass


def never_answered(address):
    end = socket.socket()
    end.setblocking(False)
    assert end.connect_ex((address, 9)) == errno.EINPROGRESS
    return end


@pytest.fixture
def ends(netns):
    """Connections of every kind of address, in several states, with all kinds of queues and timers."""
    subprocess.run(["ip", "-n", netns, "route", "add", "192.0.2.0/24", "dev", "lo"], check=True)
    with ExitStack() as held:
        with namespaces.inside(netns):
            pairs = [
                pair(family, bind, connect, algorithm)
                for family, bind, connect in (
                    (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
                    (socket.AF_INET6, "::1", "::1"),
                    (socket.AF_INET6, "::", "127.0.0.2"),  # IPv4 on a dual-stack socket
                )
                for algorithm in (b"bbr", b"cubic", b"reno")
            ]
            unanswered = held.enter_context(never_answered("192.0.2.7"))
            for end in (end for both in pairs for end in both):
                held.enter_context(end)
            fill(pairs[0][0])  # into a window that closes: data waits, and times run
            pairs[1][0].send(b"unread")
            pairs[2][0].setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            pairs[3][1].shutdown(socket.SHUT_WR)
            pairs[4][0].setsockopt(socket.SOL_SOCKET, 47, (12345).to_bytes(8, "little"))  # SO_MAX_PACING_RATE
            os.fchown(pairs[5][0].fileno(), OWNER, -1)
        yield [*(end for both in pairs for end in both), unanswered]


def polled(reader, origin):
    """The rows by cookie, each as its fields' plain values."""
    return {
        int(row["cookie"]): dict(zip(ROW.names, row.item(), strict=True))
        for part in reader.poll(origin, Arena())
        for row in read_rows(part.rows.tobytes())
    }


def at_rest(rows):
    passing = ("observed_at_ns", *RUNNING)
    return {one: {name: row[name] for name in row if name not in passing} for one, row in rows.items()}


def differences(ours, theirs):
    assert ours.keys() == theirs.keys()
    return {
        (one, name): (value, theirs[one][name])
        for one, row in ours.items()
        for name, value in row.items()
        if value != theirs[one][name]
    }


@pytest.mark.parametrize("origin", [WHOLE, CUT], ids=["whole", "cut"])
def test_both_readers_say_the_same_of_every_field(readers, ends, origin):
    for _ in range(50):  # until the sockets stood still from the first look to the third
        before, ours, after = (polled(readers[name], origin) for name in ("netlink", "bpf", "netlink"))
        if at_rest(before) == at_rest(after) and {row["state"] for row in after.values()} == STATES:
            break
    assert len(ours) == len(ends)
    assert differences(at_rest(ours), at_rest(after)) == {}
    for one, row in ours.items():
        assert all(before[one][name] <= row[name] <= after[one][name] for name in RUNNING)

    # The sockets are such that agreeing on zeros is not enough.
    told = {name for name in ROW.names if any(row[name] for row in ours.values())}
    assert set(ROW.names) - told <= SILENT | ({"traffic_class"} if origin is WHOLE else set())
    assert {row["state"] for row in ours.values()} == STATES
    assert {row["timer"] for row in ours.values()} >= {0, 1, 2}  # and 4, once the full window is probed
    assert {row["congestion_control"] for row in ours.values()} >= {b"bbr", b"cubic", b"reno"}
    assert OWNER in {row["uid"] for row in ours.values()}


@pytest.mark.usefixtures("ends")
def test_rows_name_the_namespace_that_was_asked_for(readers, netns):
    inode = namespaces.path_of(netns).stat().st_ino
    for reader in readers.values():
        assert {row["netns"] for row in polled(reader, WHOLE).values()} == {inode}
    assert namespaces.inode_of(None) != inode  # this thread is back


def test_a_reader_finds_sockets_nobody_has_looked_at(readers, ends):
    """A socket has no cookie until somebody asks: the iterator must ask, not copy."""
    rows = polled(readers["bpf"], WHOLE)
    assert len(rows) == len(ends)
    assert 0 not in rows


@pytest.mark.usefixtures("ends")
def test_sockets_beyond_the_limit_are_counted(readers):
    for reader in readers.values():
        parts = [(len(part.rows), part.left_out) for part in reader.poll(WHOLE, Arena(), max_sockets=7)]
        assert tuple(map(sum, zip(*parts, strict=True))) == (7, 12)


def test_sockets_that_open_and_close_during_walks_never_tear_a_row(readers, netns):
    command = ["ip", "netns", "exec", netns, sys.executable, "-c", CHURN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as churning:
        port = int(churning.stdout.readline())
        seen = 0
        arena = Arena()
        for _ in range(300):
            for part in readers["bpf"].poll(WHOLE, arena):
                for row in read_rows(
                    part.rows.tobytes()
                ):  # raises where a byte of the frame is not in its place
                    seen += 1
                    assert port in (row["local_port"], row["remote_port"])
                    assert row["local_address"] == row["remote_address"]
                    assert (row["netns"], row["local_prefix_length"]) == (namespaces.inode_of(netns), 128)
        churning.terminate()
    assert seen > 300


@pytest.mark.usefixtures("ends")
def test_two_readers_at_once_do_not_write_into_each_other(netns):
    found = {}

    def walk(pop):
        reader = BpfReader(netns)
        arena = Arena()
        origin = Origin(pop, "edge1", FULL)
        found[pop] = {
            (bytes(row["pop"]), int(row["netns"]), len(part.rows))
            for _ in range(200)
            for part in reader.poll(origin, arena)
            for row in read_rows(part.rows.tobytes())
        }
        reader.close()

    walking = [threading.Thread(target=walk, args=(pop,)) for pop in ("ams1", "fra2")]
    for each in walking:
        each.start()
    for each in walking:
        each.join()
    inode = namespaces.inode_of(netns)
    assert found == {pop: {(pop.encode(), inode, 19)} for pop in ("ams1", "fra2")}


def descriptors():
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def test_a_closed_reader_leaves_nothing_in_the_kernel(netns):
    reader = BpfReader(netns)
    before = descriptors()
    another = BpfReader(netns)
    assert list(another.poll(WHOLE, Arena()))
    another.close()
    assert descriptors() == before
    reader.close()
