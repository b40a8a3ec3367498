"""The kernel's TCP sockets by a BPF iterator that writes finished rows: collectors/bpf/sockets.bpf.c.

A read hands out whole rows, as many as the kernel's buffer of 32 KiB takes. What is left to do here is what needs
whole addresses: classify, then cut.
"""

import mmap
import os
import time
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.libbpf.iterators import load_iterator
from tidegate_edge.libbpf.library import Needs, Unavailable
from tidegate_edge.schemas.rows import ROW, ROW_LENGTH

from . import netns as namespaces
from .arena import Arena
from .decode import Rows
from .netlink import CONNECTED
from .poll import MAX_SOCKETS, Poll
from .rows import Origin, finish, stamp, whole_addresses

OBJECT: Final = Path(__file__).with_name("sockets.bpf.o")
PROGRAM: Final = "write_rows"
NEEDS: Final = Needs("5.12", "CAP_BPF and CAP_PERFMON", "`--reader netlink` reads the same rows")

# Rows classified and cut at once: enough to make a call of numpy cheap, and they still lie in the cache.
CHUNK_ROWS: Final = 1 << 10

_CLOCK_MONOTONIC_COARSE: Final = 6  # include/uapi/linux/time.h

# `shared` of sockets.bpf.c, behind its row.
_PADDED: Final = (ROW_LENGTH + 7) // 8 * 8
_SHARED: Final = np.dtype(
    {
        "names": ["states", "hz", "unread"],
        "formats": ["<u4", "<u4", "<u8"],
        "offsets": [_PADDED, _PADDED + 4, _PADDED + 8],
        "itemsize": _PADDED + 16,
    }
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
        self._program = load_iterator(OBJECT, PROGRAM, NEEDS)
        self._memory = mmap.mmap(self._program.loaded.map_fd(".bss"), mmap.PAGESIZE)
        self._shared = np.frombuffer(self._memory, _SHARED, count=1)
        self._shared["hz"] = jiffies_per_second()

    def close(self) -> None:
        """Remove the program from the kernel."""
        del self._shared
        self._memory.close()
        self._program.unload()

    def poll(
        self, origin: Origin, arena: Arena, *, states: int = CONNECTED, max_sockets: int = MAX_SOCKETS
    ) -> Poll:
        """Walk all sockets once.

        Args:
            origin: what every row carries.
            arena: its memory is handed out again: the rows of the poll before are overwritten.
            states: a bit for each TCP state wanted; those without a `tcp_info` are never found.
            max_sockets: rows kept; the rest is counted.

        Raises:
            Unavailable: sockets have an algorithm's own state that the netlink reader could read, and this can't.
            Failure: the namespace is gone, or the kernel ends the walk with an error.
        """
        arena.rewind()
        self._memory[:ROW_LENGTH] = stamp(
            origin, time.time_ns()
        ).tobytes()  # a record's copy leaves out the frame
        self._shared["states"] = states
        self._shared["unread"] = 0
        rows: list[Rows] = []
        kept = left_out = passed_over = 0
        try:
            walk = self._start()
            try:
                while len(found := _read(walk, arena.rows(CHUNK_ROWS))):
                    finished = finish(found, *whole_addresses(found), origin)
                    rows.append(finished[: max_sockets - kept])
                    arena.give_back(len(found) - len(rows[-1]))
                    kept += len(rows[-1])
                    passed_over += len(found) - len(finished)
                    left_out += len(finished) - len(rows[-1])
            finally:
                os.close(walk)
        except OSError as error:
            raise Failure(
                f"the walk of the sockets broke: {error.strerror}", exit_code=MISSING_PART
            ) from error
        if self._shared["unread"][0]:
            raise Unavailable(
                "the kernel's BTF does not describe the state of `bbr`; if it is a module, it was loaded late",
                NEEDS,
            )
        return Poll(
            tuple(rows), damaged=0, left_out=left_out, retries=0, interrupted=False, passed_over=passed_over
        )

    def _start(self) -> int:
        with namespaces.inside(self._netns):
            return self._program.start()


def _read(walk: int, room: npt.NDArray[np.uint8]) -> Rows:
    """Fill the room, or as much of it as there are sockets left."""
    view = room.data.cast("B")
    at = 0
    while at < len(view):
        try:
            length = os.readv(walk, [view[at:]])
        except BlockingIOError:
            continue  # a million sockets passed over: the kernel lets others have their turn
        if not length:
            break
        at += length
    return room.reshape(-1)[:at].view(ROW)
