"""A link between the TUN devices of two namespaces, as a process of its own: `python -m tidegate_lab.emulator JSON`.

The JSON names the process that owns the link and, for both directions, where packets enter and the shape:
`{"owner": PID, "forward": {"namespace": …, "device": …, "shape": {…}}, "reverse": {…}}`. The process creates
the devices, prints `ready`, and then one line of JSON with the counters for every SIGUSR1 and at SIGTERM.

Run it under `chrt -f 50`: without real-time priority four busy processes make packets 43 ms late (p99).
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tidegate_lab.direction import Direction
from tidegate_lab.kernel import die_with_parent, inside_namespace, wake_exactly
from tidegate_lab.shape import Shape

_TUNSETIFF: Final = 0x400454CA  # linux/if_tun.h: _IOW('T', 202, int)
_IFF_TUN_NO_PI: Final = 0x0001 | 0x1000  # linux/if_tun.h. No IFF_VNET_HDR: the kernel segments to the MTU.
_LONGEST_PACKET: Final = 65_535
_BATCH: Final = 32  # packets of one direction before the other has its turn


class _EndIsGone(Exception):
    """A device was removed, so that there is nothing left to emulate."""


@dataclass(slots=True)
class _Lane:
    """One direction with its two devices and the packets under way, in the order of their due times."""

    source: int
    sink: int
    direction: Direction
    under_way: deque[tuple[float, bytes]] = field(default_factory=deque)

    def take_in(self) -> None:
        """Read what has arrived, at most a batch."""
        for _ in range(_BATCH):
            try:
                packet = os.read(self.source, _LONGEST_PACKET)
            except BlockingIOError:
                return
            except OSError as error:
                raise _EndIsGone from error
            due = self.direction.offer(len(packet), time.monotonic())
            if due is not None:
                self.under_way.append((due, packet))

    def put_out(self) -> None:
        """Write what is due, at most a batch."""
        for _ in range(_BATCH):
            now = time.monotonic()
            if not self.under_way or self.under_way[0][0] > now:
                return
            due, packet = self.under_way.popleft()
            try:
                os.write(self.sink, packet)
            except OSError:  # the far device is down: what it cannot take is gone
                continue
            self.direction.deliver(due, now)


def _create_tun(namespace: str, device: str) -> int:
    with inside_namespace(namespace):
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN_NO_PI))
    return tun


def _lanes(forward: dict[str, Any], reverse: dict[str, Any]) -> tuple[_Lane, _Lane]:
    near = _create_tun(forward["namespace"], forward["device"])
    far = _create_tun(reverse["namespace"], reverse["device"])
    return (
        _Lane(near, far, Direction(Shape(**forward["shape"]))),
        _Lane(far, near, Direction(Shape(**reverse["shape"]))),
    )


def _report(forward: _Lane, reverse: _Lane) -> None:
    counters = {
        "forward": asdict(forward.direction.counters()),
        "reverse": asdict(reverse.direction.counters()),
        "cpu_s": round(time.process_time(), 3),
    }
    print(json.dumps(counters), flush=True)


def _until_due_s(lanes: Sequence[_Lane]) -> float | None:
    """Seconds until the first packet is due; None where none is under way."""
    due = min((lane.under_way[0][0] for lane in lanes if lane.under_way), default=None)
    return None if due is None else max(0.0, due - time.monotonic())


def _carry(lanes: Sequence[_Lane], received: list[int], wakeup: int) -> None:
    """Carry packets until SIGTERM is among the `received` signals."""
    by_source = {lane.source: lane for lane in lanes}
    awaited = [*by_source, wakeup]
    while True:
        # To ask costs less than a read that finds nothing: that one raises.
        readable, _, _ = select.select(awaited, [], [], _until_due_s(lanes))
        for descriptor in readable:
            if descriptor == wakeup:
                os.read(wakeup, 64)
            else:
                by_source[descriptor].take_in()
        for lane in lanes:
            lane.put_out()
        while received:
            _report(*lanes)
            if received.pop(0) == signal.SIGTERM:
                return


def main(argument: str) -> None:
    """Emulate the link that the JSON `argument` describes, until SIGTERM or the end of a device.

    Raises:
        OSError: a namespace is missing, a device exists already, or rights are missing.
    """
    link = json.loads(argument)
    die_with_parent(link["owner"])
    wake_exactly()
    received: list[int] = []
    # A signal between the check and select() must end the sleep: its byte in the pipe does.
    wakeup, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda caught, _: received.append(caught))
    lanes = _lanes(link["forward"], link["reverse"])
    print("ready", flush=True)
    with contextlib.suppress(_EndIsGone, BrokenPipeError):  # or nobody is left to read the counters
        _carry(lanes, received, wakeup)


if __name__ == "__main__":
    main(sys.argv[1])
