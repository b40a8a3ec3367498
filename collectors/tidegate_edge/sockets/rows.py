"""The pure step from netlink datagrams to finished rows: decoded, classified, then cut."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import ROW, ROW_LENGTH, new_rows

from .addresses import DEFAULT, Addresses, Cut
from .decode import Rows, fill_rows, find_sockets
from .messages import Words
from .traffic import Classifier


@dataclass(frozen=True, slots=True)
class Origin:
    """What every row of a collector carries, and how it treats addresses.

    Attributes:
        pop: name of the POP, at most 16 bytes of UTF-8.
        host: name of the host, at most 32 bytes of UTF-8.
        cut: how many leading bits of addresses are kept.
        classifier: of traffic, or None where the fleet is not known.
    """

    pop: str
    host: str
    cut: Cut = DEFAULT
    classifier: Classifier | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, and what was not one.

    Attributes:
        rows: finished.
        other: messages that are no socket's.
        damaged: messages, or rests of datagrams, that could not be read.
        interrupted: the kernel marked the dump as inconsistent.
    """

    rows: Rows
    other: int
    damaged: int
    interrupted: bool


def _fresh(count: int) -> npt.NDArray[np.uint8]:
    return np.empty((count, ROW_LENGTH), np.uint8)


def make_rows(
    words: Words,
    datagrams: Sequence[tuple[int, int]],
    origin: Origin,
    observed_at_ns: int,
    memory: Callable[[int], npt.NDArray[np.uint8]] = _fresh,
) -> Batch:
    """The rows of datagrams that lie one behind the other.

    Args:
        words: the buffer as little-endian words of four bytes.
        datagrams: begin and end of each datagram, bytes; begins are multiples of four.
        origin: what every row carries.
        observed_at_ns: Unix time of the poll, nanoseconds.
        memory: gives room for so many rows, one a line.
    """
    sockets = find_sockets(words, datagrams)
    room = memory(len(sockets.starts))
    room[:] = _stamp(origin, observed_at_ns)
    rows = room.reshape(-1).view(ROW)
    local, remote = fill_rows(rows, sockets)
    if origin.classifier:
        rows["traffic_class"] = origin.classifier.classify(local, remote)
    _write_cut(rows, local, "local", origin.cut)
    _write_cut(rows, remote, "remote", origin.cut)
    return Batch(rows, sockets.other, sockets.damaged, sockets.interrupted)


def _stamp(origin: Origin, observed_at_ns: int) -> npt.NDArray[np.uint8]:
    """The bytes of a row with what is the same for all of them: one copy instead of a column each."""
    stamp = new_rows(1)
    stamp["observed_at_ns"] = observed_at_ns
    stamp["pop"] = origin.pop.encode()
    stamp["host"] = origin.host.encode()
    return stamp.view(np.uint8)


_OFFSETS: Final = {name: place[1] for name, place in (ROW.fields or {}).items()}


def _halves(side: str) -> np.dtype[np.void]:
    """A row's address as two big-endian numbers: network order is the order of the prefixes."""
    at = _OFFSETS[f"{side}_address"]
    return np.dtype(
        {"names": ["high", "low"], "formats": [">u8"] * 2, "offsets": [at, at + 8], "itemsize": ROW_LENGTH}
    )


_HALVES: Final = {side: _halves(side) for side in ("local", "remote")}


def _write_cut(rows: Rows, addresses: Addresses, side: str, cut: Cut) -> None:
    kept_addresses, kept = addresses.cut(cut)
    halves = rows.view(_HALVES[side])
    halves["high"] = kept_addresses.high
    halves["low"] = kept_addresses.low
    rows[f"{side}_prefix_length"] = kept
