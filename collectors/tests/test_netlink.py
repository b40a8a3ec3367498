"""Reading the kernel itself: what happens when it has little room, many sockets or an older interface."""

import shutil
import socket
import subprocess
import uuid

import pytest
from tidegate_edge.errors import Failure
from tidegate_edge.sockets import netlink
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.poll import ATTEMPTS, poll
from tidegate_edge.sockets.rows import Origin

ORIGIN = Origin("ams1", "edge1", FULL)


@pytest.fixture
def diag():
    opened = netlink.SocketDiag()
    yield opened
    opened.close()


@pytest.fixture
def pairs():
    """200 connections, of both families."""
    ends = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((address, 0), family=family, backlog=128) as listener:
            for _ in range(100):
                ends.append(socket.create_connection(listener.getsockname()[:2]))
                ends.append(listener.accept()[0])
    yield {(end.getsockname()[1], end.getpeername()[1]) for end in ends}
    for end in ends:
        end.close()


def ports(parts):
    return {(int(row["local_port"]), int(row["remote_port"])) for part in parts for row in part.rows}


def counted(parts):
    """Rows given, and sockets left out."""
    return tuple(map(sum, zip(*((len(part.rows), part.left_out) for part in parts), strict=True)))


def test_one_walk_and_two_find_the_same_sockets(diag, pairs, monkeypatch):
    assert pairs <= ports(poll(diag, ORIGIN, Arena()))
    monkeypatch.setattr(netlink, "one_walk", netlink.walk_by_family)
    by_family = netlink.SocketDiag()
    assert pairs <= ports(poll(by_family, ORIGIN, Arena()))
    by_family.close()


def test_a_kernel_that_does_not_know_the_one_walk_is_asked_by_family(pairs, monkeypatch):
    monkeypatch.setattr(netlink, "one_walk", lambda *_: [(99, bytes(60))])  # the kernel says EINVAL
    diag = netlink.SocketDiag()
    arena = Arena()
    for _ in range(2):
        assert pairs <= ports(poll(diag, ORIGIN, arena))
    diag.close()


def test_a_request_that_no_kernel_knows_is_a_clear_failure(monkeypatch):
    monkeypatch.setattr(netlink, "one_walk", lambda *_: [(99, bytes(60))])
    monkeypatch.setattr(netlink, "walk_by_family", netlink.one_walk)
    diag = netlink.SocketDiag()
    with pytest.raises(Failure, match="no TCP socket diagnostics") as caught:
        list(poll(diag, ORIGIN, Arena()))
    assert caught.value.exit_code == 3
    diag.close()


@pytest.mark.usefixtures("pairs")
def test_datagrams_that_do_not_fit_are_never_taken_for_the_whole(diag):
    arena = Arena()
    arena.buffer = bytearray(1 << 10)
    with pytest.raises(
        Failure, match=rf"{ATTEMPTS} dumps .* were lost: a datagram of \d+ bytes was cut to 1024"
    ):
        list(poll(diag, ORIGIN, arena))
    assert counted(poll(diag, ORIGIN, Arena()))[0] >= 400  # and the next poll is a new start


def test_a_small_buffer_gives_the_same_rows_in_more_pieces(diag, pairs):
    arena = Arena()
    arena.buffer = bytearray(netlink.MAX_DATAGRAM)
    found = [ports([part]) for part in poll(diag, ORIGIN, arena)]
    assert sum(map(bool, found)) > 1
    assert pairs <= set().union(*found)


class OnceBroken(netlink.SocketDiag):
    """Loses the rest of its first dump."""

    broken = False

    def dump(self, *arguments):
        for datagrams in super().dump(*arguments):
            yield datagrams
            if not self.broken:
                self.broken = True
                raise netlink.Broken("lost")


def test_a_dump_that_broke_is_repeated_and_no_socket_given_twice(pairs):
    diag = OnceBroken()
    arena = Arena()
    arena.buffer = bytearray(netlink.MAX_DATAGRAM)
    ends, cookies, retries = set(), [], 0
    for part in poll(diag, ORIGIN, arena):
        ends |= ports([part])
        cookies += part.rows["cookie"].tolist()
        retries += part.retries
    diag.close()
    assert (diag.broken, retries) == (True, 1)
    assert pairs <= ends
    assert len(set(cookies)) == len(cookies)


@pytest.mark.usefixtures("pairs")
def test_sockets_beyond_the_limit_are_counted(diag):
    total, none = counted(poll(diag, ORIGIN, Arena(), max_sockets=10_000))
    rows, left_out = counted(poll(diag, ORIGIN, Arena(), max_sockets=150))
    assert (rows, none) == (150, 0)
    assert abs(left_out + 150 - total) < 50  # other sockets of this host come and go


@pytest.mark.usefixtures("pairs")
def test_memory_is_used_again(diag):
    arena = Arena()
    first, second = (next(iter(poll(diag, ORIGIN, arena))).rows.ctypes.data for _ in range(2))
    assert first == second


def test_a_poll_that_nobody_reads_to_its_end_leaves_nothing_in_the_next(diag, pairs):
    arena = Arena()
    arena.buffer = bytearray(netlink.MAX_DATAGRAM)
    begun = poll(diag, ORIGIN, arena)
    next(begun)
    begun.close()
    cookies = [int(row["cookie"]) for part in poll(diag, ORIGIN, Arena()) for row in part.rows]
    assert len(set(cookies)) == len(cookies) >= len(pairs)
    assert pairs <= ports(poll(diag, ORIGIN, Arena()))


@pytest.mark.root
def test_another_network_namespace_is_read_from_this_one(pairs):
    if not shutil.which("ip"):
        pytest.fail("iproute2 is needed")
    name = f"tidegate-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        diag = netlink.SocketDiag(name)
        assert ports(poll(diag, ORIGIN, Arena())) == set()
        diag.close()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
    here = netlink.SocketDiag()
    assert pairs <= ports(poll(here, ORIGIN, Arena()))
    here.close()
