"""All network namespaces of a host: present, appearing, and deleted while they are polled."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tidegate_edge import namespaces
from tidegate_edge.counters import Counters
from tidegate_edge.namespaces import present
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.netlink import EVERY
from tidegate_edge.sockets.netns import OWN
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sources import Wanted, open_sources

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
ORIGIN = Origin("ams1", "edge1")
pytestmark = pytest.mark.root

# A listener in a namespace of its own, which ends with its standard input.
LISTENER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


def ip(*argv):
    subprocess.run(["ip", *argv], check=True, capture_output=True)


class Listener:
    """A process that listens in a namespace."""

    def __init__(self, *enter):
        command = [*enter, sys.executable, "-c", LISTENER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def end(self):
        self.process.communicate(timeout=30)


@pytest.fixture
def name():
    made = f"tgn-{os.getpid()}"
    ip("netns", "add", made)
    ip("-n", made, "link", "set", "lo", "up")
    yield made
    subprocess.run(["ip", "netns", "del", made], check=False, capture_output=True)


def listening(sources, arena):
    return {
        (int(row["netns"]), int(row["local_port"]))
        for part in sources.poll(ORIGIN, arena)
        for row in part.rows
        if row["state"] == 10
    }


def awaits(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def opened():
    counters = Counters()
    told = []
    sources = open_sources(Wanted("auto", "all", EVERY, 10_000), counters, told.append)
    yield sources, counters, told
    sources.close()


def test_every_namespace_is_found_once(name):
    found = present()
    inode = Path("/run/netns", name).stat().st_ino
    assert found[inode] == Path("/run/netns", name)
    assert found[OWN.stat().st_ino] == OWN  # not the file of a process that may end before it is opened


def test_named_and_unnamed_namespaces_are_read_and_let_go_of(name, opened):
    sources, counters, _ = opened
    arena = Arena()
    named = Listener("ip", "netns", "exec", name)
    unnamed = Listener("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    inode = Path("/run/netns", name).stat().st_ino
    theirs = Path("/proc", str(unnamed.process.pid), "ns", "net").stat().st_ino
    try:
        seen = listening(sources, arena)
        assert {(inode, named.port), (theirs, unnamed.port)} <= seen
    finally:
        named.end()
        unnamed.end()
    ip("netns", "del", name)
    awaits(
        lambda: (
            not {inode, theirs} & {netns for netns, _ in listening(sources, arena)}
            and counters.namespaces_gone >= 2
        )
    )
    assert {inode, theirs} & present().keys() == set()


@pytest.fixture
def announced(monkeypatch):
    """Only what the kernel tells of has the namespaces looked for again."""
    monkeypatch.setattr(namespaces, "RESCAN_S", 3600)


@pytest.mark.usefixtures("announced")
def test_one_that_appears_is_announced_and_read(opened):
    sources, _, _ = opened
    arena = Arena()
    listening(sources, arena)
    made = f"tgn-{os.getpid()}-late"
    ip("netns", "add", made)
    ip("-n", made, "link", "set", "lo", "up")
    listener = Listener("ip", "netns", "exec", made)
    try:
        inode = Path("/run/netns", made).stat().st_ino
        awaits(lambda: (inode, listener.port) in listening(sources, arena))
    finally:
        listener.end()
        ip("netns", "del", made)


def test_deleted_between_the_look_and_its_poll_others_are_read_on(name, opened):
    sources, counters, _ = opened
    arena = Arena()
    here = OWN.stat().st_ino
    listener = Listener()
    try:
        parts = sources.poll(ORIGIN, arena)
        next(parts)  # all are open now
        ip("netns", "del", name)
        for _ in parts:
            pass
        assert (here, listener.port) in listening(sources, arena)
    finally:
        listener.end()
    assert counters.namespaces_failed == 0


def test_a_collector_survives_churn_and_loses_no_poll_of_a_lasting_namespace(tmp_path):
    stop = threading.Event()

    def churn():
        number = 0
        while not stop.is_set():
            number += 1
            made = f"tgn-{os.getpid()}-churn{number % 3}"
            ip("netns", "add", made)
            ip("netns", "del", made)

    churning = threading.Thread(target=churn)
    churning.start()
    listener = Listener()
    out = tmp_path / "rows.json"
    try:
        command = [COLLECTOR, "run", "--json", "--netns", "all", "--all-states", "--out", out]
        done = subprocess.run(
            [*command, "--interval", "50ms", "--count", "40"], capture_output=True, check=False, timeout=60
        )
    finally:
        stop.set()
        churning.join()
        listener.end()
    assert done.returncode == 0, done.stderr
    counters = json.loads(done.stderr.splitlines()[-1])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert counters["rows"] == len(rows)
    ours = [row for row in rows if row["local_port"] == listener.port and row["state"] == "LISTEN"]
    assert len(ours) == counters["polls"] == 40
    assert counters["namespaces_gone"] > 0
