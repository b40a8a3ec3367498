"""The kernel's TCP sockets by a BPF iterator that writes finished rows: collectors/bpf/sockets.bpf.c.

The rows stand in memory that the program shares with its reader, with their number. A read ends where the memory is
full or the walk is over, and the next one begins when the reader has taken them. What is left to do here is what
needs whole addresses and the program can't: select, hash, and classify by a fleet that is too large for it.
"""

import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.libbpf.iterators import load_iterator
from tidegate_edge.libbpf.library import Needs, Unavailable
from tidegate_edge.schemas.rows import ROW, ROW_LENGTH

from . import netns as namespaces
from .addresses import IPV4_BITS_BEFORE, Addresses, high_mask, low_mask
from .arena import Arena
from .netlink import CONNECTED
from .part import NO_ROWS, Part
from .poll import MAX_SOCKETS
from .rows import Origin, finish, stamp
from .traffic import Classifier

OBJECT: Final = Path(__file__).with_name("sockets.bpf.o")
PROGRAMS: Final = ("write_rows_ahead", "write_rows")  # the first takes Linux 6.2
NEEDS: Final = Needs("5.12", "CAP_BPF and CAP_PERFMON", "`--reader netlink` reads the same rows")

# Rows of one read, which are one part: enough to make a call of numpy cheap, and they still lie in the cache.
# A reader's memory in the kernel is 540 bytes for each.
READ_ROWS: Final = 1 << 9

# Steps of the classification that the program can hold, a power of two: a fleet of some 500 prefixes. Beyond that, or
# where it takes more than keys, the reader classifies.
CLASS_STEPS: Final = 1 << 10

_UNREAD: Final = (
    "the kernel's BTF does not describe the state of `bbr`; if it is a module, it was loaded late"
)

_CLOCK_MONOTONIC_COARSE: Final = 6  # include/uapi/linux/time.h

# `shared` of sockets.bpf.c.
_SHARED: Final = np.dtype(
    [
        ("states", "<u4"),
        ("hz", "<u4"),
        ("unread", "<u8"),
        ("at", "<u4"),
        ("kept_ipv4", "<u4"),
        ("kept_ipv6", "<u4"),
        ("classifies", "<u4"),
        ("mask_ipv4", "<u8"),
        ("mask_ipv6", "<u8", 2),
        ("class_from", "<u8", CLASS_STEPS),
        ("class", "<u4", CLASS_STEPS),
        ("whole", "<u8", (4, READ_ROWS)),
        ("rows", "u1", (READ_ROWS, ROW_LENGTH)),
    ]
)


def jiffies_per_second() -> int:
    """The kernel's HZ: the coarse clock has the resolution of a jiffy (KTIME_LOW_RES, include/linux/hrtimer.h)."""
    return round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE))


class BpfReader:
    """Reads the sockets of one network namespace by a program of its own; one poll at a time.

    Args:
        netns: name of the namespace as `ip netns` knows it, a path, or None for that of the calling thread.

    Raises:
        Unavailable: this host can't run the program, and why.
        Failure: there is no such namespace.
    """

    name: Final = "bpf"

    def __init__(self, netns: str | None = None) -> None:
        namespaces.inode_of(netns)
        self._netns = netns
        self._program = load_iterator(OBJECT, PROGRAMS, NEEDS)
        try:
            memory = mmap.mmap(self._program.loaded.map_fd(".bss"), _pages(_SHARED.itemsize))
        except OSError as error:
            self._program.unload()
            raise Unavailable(
                f"{OBJECT.name} was built for another version of this package", NEEDS
            ) from error
        self._shared = np.frombuffer(memory, _SHARED, count=1)[0]
        self._shared["hz"] = jiffies_per_second()
        self._rows = self._shared["rows"].reshape(-1).view(ROW)
        self._whole = self._shared["whole"]

    def close(self) -> None:
        """Remove the program from the kernel; rows that were given stay readable."""
        del self._shared, self._rows, self._whole
        self._program.unload()

    def poll(
        self,
        origin: Origin,
        arena: Arena,  # noqa: ARG002 — rows lie in memory of the program's own
        *,
        states: int = CONNECTED,
        max_sockets: int = MAX_SOCKETS,
    ) -> Iterator[Part]:
        """Walk all sockets once.

        Args:
            origin: what every row carries.
            arena: not used: the rows of a part lie where the program writes them.
            states: a bit for each TCP state wanted; those without a `tcp_info` are never found.
            max_sockets: rows given; the rest is counted.

        Yields:
            The parts of the poll, the last without rows.

        Raises:
            Unavailable: sockets have an algorithm's own state that the netlink reader could read, and this can't.
                The rows given before are right.
            Failure: the namespace is gone, or the kernel ends the walk with an error.
        """
        given = left_out = passed_over = 0
        walk = self._start(origin, states)
        if self._classifies(origin.classifier):
            origin = replace(origin, classifier=None)
        try:
            full = True
            while full:
                full = self._read(walk)
                count = int(self._shared["at"])
                if self._shared["unread"]:
                    raise Unavailable(_UNREAD, NEEDS)
                found = self._rows[:count]
                finished = finish(found, *self._whole_addresses(count), origin)
                kept = finished[: max_sockets - given]
                given += len(kept)
                passed_over += count - len(finished)
                left_out += len(finished) - len(kept)
                yield Part(kept)
        finally:
            os.close(walk)
        yield Part(NO_ROWS, left_out=left_out, passed_over=passed_over)

    def _start(self, origin: Origin, states: int) -> int:
        """A descriptor of a new walk, for which the shared memory is ready."""
        try:
            with namespaces.inside(self._netns):
                walk = self._program.start()
                netns = namespaces.inode_of(None)  # a name may stand for another namespace by now
        except OSError as error:
            raise _broken(error) from error
        self._shared["states"] = states
        self._shared["unread"] = 0
        ipv4, ipv6 = IPV4_BITS_BEFORE + origin.cut.ipv4, origin.cut.ipv6
        self._shared["kept_ipv4"], self._shared["kept_ipv6"] = ipv4, ipv6
        self._shared["mask_ipv4"], self._shared["mask_ipv6"] = (
            low_mask(ipv4),
            (high_mask(ipv6), low_mask(ipv6)),
        )
        self._shared["rows"] = stamp(origin, time.time_ns(), netns).view(np.uint8)
        return walk

    def _classifies(self, classifier: Classifier | None) -> bool:
        """Have the program classify; False where it can't."""
        steps = classifier.steps() if classifier else None
        able = steps is not None and len(steps[0]) <= CLASS_STEPS
        self._shared["classifies"] = able
        if steps is None or not able:
            return False
        beyond = (0, CLASS_STEPS - len(steps[0]))
        self._shared["class_from"], self._shared["class"] = (np.pad(each, beyond, "edge") for each in steps)
        return True

    def _read(self, walk: int) -> bool:
        """Let the program write rows anew; False where the walk is over."""
        self._shared["at"] = 0
        while True:
            try:
                return bool(os.read(walk, 1))
            except BlockingIOError:
                continue  # a million sockets without filling the memory: the kernel lets others have their turn
            except OSError as error:
                raise _broken(error) from error

    def _whole_addresses(self, count: int) -> tuple[Addresses, Addresses]:
        local_high, local_low, remote_high, remote_low = self._whole[:, :count]
        return Addresses(local_high, local_low), Addresses(remote_high, remote_low)


def _pages(length: int) -> int:
    return -(-length // mmap.PAGESIZE) * mmap.PAGESIZE


def _broken(error: OSError) -> Failure:
    return Failure(f"the walk of the sockets broke: {error.strerror}", exit_code=MISSING_PART)
