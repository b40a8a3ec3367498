"""One look at this host: its counters, and, only where they say that CPU is short, its sockets."""

import time
from typing import Final

import numpy as np

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.health_counters import Counters, read_counters
from tidegate_edge.schemas.rows import ROW
from tidegate_edge.sockets import kernel
from tidegate_edge.sockets.decode import fill_rows, find_sockets
from tidegate_edge.sockets.netlink import MAX_DATAGRAM, Broken, SocketDiag

from .fallback import Look
from .pressure import pressed
from .signature import Signs, signs

ATTEMPTS: Final = 3
BUFFER_LENGTH: Final = 4 * MAX_DATAGRAM
_ESTABLISHED: Final = 1 << 1  # include/net/tcp_states.h


class Observer:
    """Looks at the host and the sockets of this process's network namespace.

    Raises:
        Failure: the kernel tells nothing of its health.
    """

    def __init__(self) -> None:
        self._counters: Counters = read_counters()
        self._read_ns = time.monotonic_ns()

    def observe(self) -> Look:
        """The time since the last look; sockets are asked for only where the host was pressed.

        Raises:
            Failure: the kernel cannot be asked.
        """
        counters, now_ns = read_counters(), time.monotonic_ns()
        host = pressed(self._counters, counters, max((now_ns - self._read_ns) // 1000, 1))
        self._counters, self._read_ns = counters, now_ns
        return Look(host, read_signs() if host.beyond() else None)


def read_signs() -> Signs:
    """The signs in the established sockets, now; a buffer of 256 KiB at a time.

    Raises:
        Failure: the kernel cannot be asked, or lost part of three dumps.
    """
    diag = SocketDiag()
    try:
        for _ in range(ATTEMPTS):
            try:
                return _once(diag)
            except Broken as broken:
                diag.reopen()
                lost = broken
    finally:
        diag.close()
    raise Failure(f"{ATTEMPTS} dumps of the sockets were lost: {lost}", exit_code=MISSING_PART)


def _once(diag: SocketDiag) -> Signs:
    buffer = bytearray(BUFFER_LENGTH)
    words = np.frombuffer(buffer, "<u4")
    total = Signs()
    for datagrams in diag.dump(_ESTABLISHED, buffer, kernel.WANTED_ATTRIBUTES):
        sockets = find_sockets(words, datagrams)
        rows = np.zeros(len(sockets.starts), ROW)
        fill_rows(rows, sockets)
        total += signs(rows)
    return total
