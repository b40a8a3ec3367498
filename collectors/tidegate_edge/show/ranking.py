"""Rows of two polls to the lines of a table: summed by prefix or one a socket, filtered, the greatest first."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import ROW
from tidegate_edge.sockets.addresses import Cut, as_text
from tidegate_edge.sockets.decode import Rows
from tidegate_edge.sockets.rows import whole_addresses
from tidegate_edge.sockets.selection import Mask, Network, within

BY_PREFIX: Final = "prefix"
BY_SOCKET: Final = "socket"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sockets are shown.

    Attributes:
        prefix: of the remote address, or None for all.
        port: on either side, or None for all.
        algorithm: of congestion control, or None for all.
    """

    prefix: Network | None = None
    port: int | None = None
    algorithm: str | None = None

    def kept(self, rows: Rows) -> Mask:
        """True for the rows, whose addresses are whole, that are shown."""
        kept = np.ones(len(rows), np.bool_)
        if self.prefix is not None:
            kept &= within(whole_addresses(rows)[1], self.prefix)
        if self.port is not None:
            kept &= (rows["local_port"] == self.port) | (rows["remote_port"] == self.port)
        if self.algorithm is not None:
            kept &= rows["congestion_control"] == self.algorithm.encode()
        return kept


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table.

    Attributes:
        remote: a prefix, or a socket's address, cut as asked for, and port.
        algorithm: of congestion control; of a prefix with several, the most frequent.
        sockets: in it.
        bytes: acknowledged by the peers since the sockets were opened.
        rate: bytes acknowledged in a second since the poll before, of sockets that both polls saw.
        cwnd: segments, the median.
        rtt_ms: smoothed, milliseconds, the median.
        delivery_rate: the kernel's estimate, bytes per second, the median.
        retransmitted: bytes retransmitted of those sent, 0 to 1.
    """

    remote: str
    algorithm: str
    sockets: int
    bytes: int
    rate: float
    cwnd: int
    rtt_ms: float
    delivery_rate: int
    retransmitted: float


# What lines can be sorted by, the greatest first.
SORTS: Final = tuple(name for name in Line.__dataclass_fields__ if name not in {"remote", "algorithm"})


def gather(batches: Iterable[Rows]) -> Rows:
    """The rows of a poll, copied one batch after the other, for the next overwrites them."""
    return np.frombuffer(b"".join(rows.tobytes() for rows in batches), ROW)


def rates(before: Rows, now: Rows) -> npt.NDArray[np.float64]:
    """Bytes per second that were acknowledged between two polls, for each row of the second.

    Zero where the first poll did not see the socket. By cookie and network namespace.
    """
    was = {
        (int(row["netns"]), int(row["cookie"])): (int(row["bytes_acked"]), int(row["observed_at_ns"]))
        for row in before
    }
    found = np.zeros(len(now))
    for index, row in enumerate(now):
        old = was.get((int(row["netns"]), int(row["cookie"])))
        if old is not None and int(row["observed_at_ns"]) > old[1]:
            grown = max(int(row["bytes_acked"]) - old[0], 0)
            found[index] = grown * 1e9 / (int(row["observed_at_ns"]) - old[1])
    return found


def rank(before: Rows, now: Rows, by: str, cut: Cut, sort: str, limit: int) -> list[Line]:
    """The lines with the greatest values.

    Args:
        before: rows of the poll before, with whole addresses.
        now: rows of this poll that are shown, with whole addresses.
        by: `BY_PREFIX` or `BY_SOCKET`.
        cut: of the addresses shown.
        sort: one of `SORTS`.
        limit: lines at most.
    """
    remote, kept = whole_addresses(now)[1].cut(cut)
    sockets = now["cookie"] if by == BY_SOCKET else np.zeros(len(now), np.uint64)
    keys = np.stack([remote.high, remote.low, sockets], axis=1)
    _, groups = np.unique(keys, axis=0, return_inverse=True)
    speeds = rates(before, now)
    order = np.argsort(groups, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []
    lines = [
        _line(
            now[piece],
            float(speeds[piece].sum()),
            _name(int(remote.high[piece[0]]), int(remote.low[piece[0]]), int(kept[piece[0]])),
            by,
        )
        for piece in pieces
    ]
    return sorted(lines, key=lambda line: getattr(line, sort), reverse=True)[:limit]


def _name(high: int, low: int, kept: int) -> str:
    return as_text(high.to_bytes(8, "big") + low.to_bytes(8, "big"), kept)


def _line(rows: Rows, rate: float, remote: str, by: str) -> Line:
    algorithms, counts = np.unique(rows["congestion_control"], return_counts=True)
    sent = int(rows["bytes_sent"].sum())
    return Line(
        remote=f"{remote} :{int(rows['remote_port'][0])}" if by == BY_SOCKET else remote,
        algorithm=algorithms[np.argmax(counts)].decode("utf-8", "replace"),
        sockets=len(rows),
        bytes=int(rows["bytes_acked"].sum()),
        rate=rate,
        cwnd=int(np.median(rows["snd_cwnd"])),
        rtt_ms=float(np.median(rows["rtt_us"])) / 1000,
        delivery_rate=int(np.median(rows["delivery_rate"])),
        retransmitted=int(rows["bytes_retrans"].sum()) / sent if sent else 0.0,
    )
