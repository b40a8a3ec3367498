"""The connections to the destinations: the kernel selects them, and only they are received and decoded."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.schemas.rows import ROW
from tidegate_edge.sockets import kernel
from tidegate_edge.sockets.addresses import Addresses
from tidegate_edge.sockets.decode import Sockets, fill_rows, find_sockets
from tidegate_edge.sockets.netlink import MAX_DATAGRAM, Broken, SocketDiag
from tidegate_edge.sockets.selection import within
from tidegate_edge.steer.prefix import Prefix

from .filter import select_remote
from .state import Numbers

ATTEMPTS: Final = 3
# 506 bytes each while they are decoded: 33 MB.
MAX_CONNECTIONS: Final = 1 << 16
BUFFER_LENGTH: Final = 4 * MAX_DATAGRAM

_ESTABLISHED: Final = 1 << 1  # include/net/tcp_states.h
_INFO: Final = 1 << kernel.INET_DIAG_INFO - 1


@dataclass(frozen=True, slots=True)
class Connections:
    """Established connections as columns of one length; fields of struct tcp_info where not said otherwise.

    Attributes:
        high: upper 64 bits of the remote address; IPv4 stands as ::ffff:a.b.c.d.
        low: its lower 64 bits.
        cookie: the kernel's number of the socket, never used twice.
        cwnd: congestion window, segments.
        ssthresh: slow start threshold, segments; 2^31 - 1: none yet (TCP_INFINITE_SSTHRESH).
        mss: bytes of a segment.
        ca_state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (enum tcp_ca_state).
        retransmitted: segments so far.
        acked: bytes so far.
        app_limited: 1 where the delivery rate was limited by the application.
    """

    high: Numbers
    low: Numbers
    cookie: Numbers
    cwnd: Numbers
    ssthresh: Numbers
    mss: Numbers
    ca_state: Numbers
    retransmitted: Numbers
    acked: Numbers
    app_limited: Numbers

    def __len__(self) -> int:
        return len(self.cookie)

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Connections":
        """Those for which `chosen` is true."""
        return Connections(*(getattr(self, column.name)[chosen] for column in fields(self)))


_COLUMNS: Final = (
    "cookie",
    "snd_cwnd",
    "snd_ssthresh",
    "snd_mss",
    "ca_state",
    "total_retrans",
    "bytes_acked",
    "delivery_rate_app_limited",
)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one look at the kernel saw.

    Attributes:
        connections: to the destinations.
        damaged: messages, or rests of datagrams, that could not be read.
        beyond: connections beyond `MAX_CONNECTIONS`, which were not read.
    """

    connections: Connections
    damaged: int = 0
    beyond: int = 0


class Observer:
    """Reads the connections of this process's network namespace to some destinations.

    Args:
        toward: the destinations.

    Raises:
        Failure: this host's sockets cannot be read.
    """

    def __init__(self, toward: tuple[Prefix, ...]) -> None:
        self._toward: Final = toward
        self._filter: Final = select_remote(toward)
        self._buffer: Final = bytearray(BUFFER_LENGTH)
        self._diag: Final = SocketDiag()

    def close(self) -> None:
        """Close the netlink socket."""
        self._diag.close()

    def observe(self) -> Observation:
        """The established connections to the destinations, now.

        A dump that the kernel could not keep consistent counts: a connection that it missed is seen the next time.

        Raises:
            Failure: the kernel cannot be asked, or lost part of three dumps.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._once()
            except Broken as broken:
                self._diag.reopen()
                lost = broken
        raise Failure(f"{ATTEMPTS} dumps of the sockets were lost: {lost}", exit_code=MISSING_PART)

    def _once(self) -> Observation:
        words = np.frombuffer(self._buffer, "<u4")
        parts: list[Connections] = []
        kept = damaged = beyond = 0
        for datagrams in self._diag.dump(_ESTABLISHED, self._buffer, _INFO, self._filter.attribute):
            sockets = find_sockets(words, datagrams)
            damaged += sockets.damaged
            if kept + len(sockets.starts) > MAX_CONNECTIONS:
                beyond += len(sockets.starts)
                continue
            found = decode(sockets)
            if not self._filter.exact:
                found = found.where(_inside(found, self._toward))
            parts.append(found)
            kept += len(found)
        return Observation(_joined(parts), damaged, beyond)


def decode(sockets: Sockets) -> Connections:
    """The columns of sockets that `find_sockets` found; what a kernel did not send is zero."""
    rows = np.zeros(len(sockets.starts), ROW)
    _, remote = fill_rows(rows, sockets)
    return Connections(remote.high, remote.low, *(rows[name].astype(np.uint64) for name in _COLUMNS))


def _inside(found: Connections, toward: tuple[Prefix, ...]) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(found), np.bool_)
    remote = Addresses(found.high, found.low)
    for prefix in toward:
        inside |= within(remote, prefix)
    return inside


def _joined(parts: list[Connections]) -> Connections:
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.uint64)
    return Connections(
        *(np.concatenate([nothing, *(getattr(part, c.name) for part in parts)]) for c in fields(Connections))
    )
