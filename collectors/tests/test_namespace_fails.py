"""A network namespace that is deleted during its poll and can't be entered: counted, and the others are read on."""

import os
import resource
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tidegate_edge import sources as sources_of
from tidegate_edge.counters import Counters
from tidegate_edge.namespaces import present
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.netlink import CONNECTED
from tidegate_edge.sockets.netns import OWN
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sources import Wanted, open_sources

ORIGIN = Origin("ams1", "edge1")
SO_COOKIE = 57  # include/uapi/asm-generic/socket.h
pytestmark = pytest.mark.root


def ip(*argv):
    subprocess.run(["ip", *argv], check=True, capture_output=True)


@contextmanager
def descriptors_left(count):
    """This process may open so many more files; what is open stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(OWN, os.O_RDONLY) for _ in range(count + 1)]
    for each in taken:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def cookie():
    """Of a socket in the host's own namespace."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        with near, server.accept()[0]:
            yield int.from_bytes(near.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), "little")


@pytest.fixture
def name(monkeypatch):
    """A namespace; besides it and the host's own no other is seen, those of other tests for instance."""
    made = f"tgf-{os.getpid()}"
    ip("netns", "add", made)
    seen = {OWN.stat().st_ino, Path("/run/netns", made).stat().st_ino}
    monkeypatch.setattr(
        sources_of, "present", lambda: {each: path for each, path in present().items() if each in seen}
    )
    yield made
    subprocess.run(["ip", "netns", "del", made], check=False, capture_output=True)


@pytest.mark.parametrize("left", [0, 1])
def test_a_namespace_deleted_during_its_poll_is_counted_and_the_others_are_read(cookie, name, left):
    counters, told = Counters(), []
    sources = open_sources(Wanted("bpf", "all", CONNECTED, 10_000), counters, told.append)
    arena = Arena()

    def polled():
        return [part.rows["cookie"].copy() for part in sources.poll(ORIGIN, arena)]

    try:
        polled()
        assert (counters.namespaces, counters.namespaces_failed) == (2, 0)
        parts = sources.poll(ORIGIN, arena)
        found = [next(parts).rows["cookie"].copy()]  # of the host's own; the other's poll is next
        ip("netns", "del", name)
        with descriptors_left(left):
            found += [part.rows["cookie"].copy() for part in parts]
        assert cookie in np.concatenate(found)
        assert (counters.namespaces, counters.namespaces_failed) == (1, 1)
        assert [f"/run/netns/{name}" in line and "Too many open files" in line for line in told] == [True]
        assert cookie in np.concatenate(polled())
        assert (counters.namespaces, counters.namespaces_failed) == (1, 1)
    finally:
        sources.close()
