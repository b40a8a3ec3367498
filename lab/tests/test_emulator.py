"""The emulator carries real packets between namespaces, with the rate, delay and loss that it was given."""

import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from math import sqrt

import pytest
from tidegate_lab.kernel import inside_namespace
from tidegate_lab.link import End, link
from tidegate_lab.namespaces import namespace, run
from tidegate_lab.shape import Shape

pytestmark = pytest.mark.root

SO_RCVBUFFORCE = 33  # asm-generic/socket.h
NEAR, FAR = "192.0.2.1", "198.51.100.1"


def readable(file, patience_s):
    """Whether it is, in time; by poll, for select takes no descriptor above 1023, and chdb keeps many open."""
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(patience_s * 1000))


@contextmanager
def emulated(forward):
    """A link, a sending socket at its near end and a receiving one at its far end."""
    with namespace("near") as near, namespace("far") as far, ExitStack() as sockets:
        ends = End(near, "far", (f"{NEAR}/32",), (FAR,)), End(far, "near", (f"{FAR}/32",), (NEAR,))
        with link(*ends, forward, Shape()) as running:
            with inside_namespace(near):
                sender = sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            with inside_namespace(far):
                receiver = sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
            receiver.bind((FAR, 9))
            sender.connect((FAR, 9))
            yield running, sender, receiver


def received(receiver, patience_s=0.5):
    """(time, sequence number) of everything that arrives until nothing does for a while."""
    got = []
    while readable(receiver, patience_s):
        packet = receiver.recv(2048)
        got.append((time.monotonic(), int.from_bytes(packet[:4], "big")))
    return got


def packet(number, size):
    """A UDP payload that makes an IP packet of `size` bytes."""
    return number.to_bytes(4, "big").ljust(size - 28, b"\0")


def test_delay_is_never_short_and_hardly_long():
    with emulated(Shape(delay_ms=40)) as (running, sender, receiver):
        delays = []
        for number in range(50):
            sent = time.monotonic()
            sender.send(packet(number, 100))
            assert readable(receiver, 2)
            delays.append(time.monotonic() - sent)
            receiver.recv(2048)
        assert min(delays) >= 0.040
        assert statistics.median(delays) < 0.040 * 1.1
        # It does not say that it was later than could be seen; a machine that pauses makes both long.
        assert 0 <= running.counters()[0].late_mean_us / 1e6 <= statistics.mean(delays) - 0.040


def test_rate_is_within_five_percent():
    with emulated(Shape(rate_bps=10_000_000)) as (_, sender, receiver):
        for number in range(500):
            sender.send(packet(number, 1400))
        got = received(receiver)
        assert len(got) == 500
        rate_bps = 499 * 1400 * 8 / (got[-1][0] - got[0][0])
        assert rate_bps == pytest.approx(10_000_000, rel=0.05)


def test_a_full_queue_drops_the_tail_and_counts_it():
    with emulated(Shape(rate_bps=1_000_000, buffer_bytes=14_000)) as (running, sender, receiver):
        for number in range(50):
            sender.send(packet(number, 1400))
        got = [number for _, number in received(receiver)]
        counters = running.counters()[0]
        assert got[:10] == list(range(10))
        assert (counters.offered, counters.delivered) == (50, len(got))
        assert counters.tail_dropped == 50 - len(got) > 30


def test_losses_are_as_many_as_asked_and_the_seed_chooses_them():
    sent, loss = 3000, 0.1
    survivors = {}
    for name, seed in (("first", 7), ("again", 7), ("other", 8)):
        with emulated(Shape(loss=loss, seed=seed)) as (running, sender, receiver):
            for number in range(sent):
                sender.send(packet(number, 100))
            survivors[name] = [number for _, number in received(receiver)]
            counters = running.counters()[0]
            assert counters.offered == sent
            assert counters.lost == sent - len(survivors[name])
            assert counters.lost == pytest.approx(sent * loss, abs=4 * sqrt(sent * loss * (1 - loss)))
    assert survivors["first"] == survivors["again"] != survivors["other"]


OWNER = """
import signal
from tidegate_lab.link import End, link
from tidegate_lab.namespaces import namespace
from tidegate_lab.shape import Shape
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background ignores it
with namespace("near") as near, namespace("far") as far:
    with link(End(near, "far"), End(far, "near"), Shape(), Shape()) as running:
        print(near, far, running._emulator.pid, flush=True)
        signal.pause()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_its_owner(end):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, stdout=-1, stderr=-1, text=True, env=environment) as owner:
        near, far, emulator = owner.stdout.readline().split()
        assert near in run("ip", "netns")
        owner.send_signal(end)
    deadline = time.monotonic() + 10
    while {near, far} & set(run("ip", "netns").split()) or os.path.exists(f"/proc/{emulator}"):  # noqa: PTH110
        assert time.monotonic() < deadline
        time.sleep(0.02)
