"""The pure step from netlink datagrams to finished rows: decoded, classified, then cut."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import ROW, ROW_LENGTH, new_rows

from .addresses import DEFAULT, Addresses, Cut
from .decode import Rows, fill_rows, find_sockets
from .layout import Known
from .messages import Words
from .pseudonym import Pseudonyms
from .selection import EVERYTHING, Selection
from .traffic import Classifier


@dataclass(frozen=True, slots=True)
class Origin:
    """What every row of a collector carries, how it treats addresses, and which sockets it passes over.

    Attributes:
        pop: name of the POP, at most 16 bytes of UTF-8.
        host: name of the host, at most 32 bytes of UTF-8.
        cut: how many leading bits of addresses are kept.
        classifier: of traffic, or None where the fleet is not known.
        selection: of sockets.
        pseudonyms: of remote addresses, or None for none.
    """

    pop: str
    host: str
    cut: Cut = DEFAULT
    classifier: Classifier | None = None
    selection: Selection = EVERYTHING
    pseudonyms: Pseudonyms | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, and what was not one.

    Attributes:
        rows: finished.
        other: messages that are no socket's.
        damaged: messages, or rests of datagrams, that could not be read.
        interrupted: the kernel marked the dump as inconsistent.
        passed_over: sockets that are excluded or not in the sample.
    """

    rows: Rows
    other: int
    damaged: int
    interrupted: bool
    passed_over: int


def _fresh(count: int) -> npt.NDArray[np.uint8]:
    return np.empty((count, ROW_LENGTH), np.uint8)


def make_rows(
    words: Words,
    datagrams: Sequence[tuple[int, int]],
    origin: Origin,
    observed_at_ns: int,
    memory: Callable[[int], npt.NDArray[np.uint8]] = _fresh,
    netns: int = 0,
    known: Known | None = None,
) -> Batch:
    """The rows of datagrams that lie one behind the other.

    Args:
        words: the buffer as little-endian words of four bytes.
        datagrams: begin and end of each datagram, bytes; begins are multiples of four.
        origin: what every row carries.
        observed_at_ns: Unix time of the poll, nanoseconds.
        memory: gives room for so many rows, one a line.
        netns: inode of the network namespace, 0 where it is not known.
        known: layouts of earlier messages, and then of these too.
    """
    sockets = find_sockets(words, datagrams, known)
    room = memory(len(sockets.starts))
    room[:] = stamp(origin, observed_at_ns, netns).view(np.uint8)  # one copy instead of a column each
    rows = room.reshape(-1).view(ROW)
    local, remote = fill_rows(rows, sockets)
    _write_cut(rows, local, "local", origin.cut)
    _write_cut(rows, remote, "remote", origin.cut)
    kept = finish(rows, local, remote, origin)
    return Batch(kept, sockets.other, sockets.damaged, sockets.interrupted, len(rows) - len(kept))


def stamp(origin: Origin, observed_at_ns: int, netns: int = 0) -> Rows:
    """One row with what is the same for all of them in place."""
    row = new_rows(1)
    row["observed_at_ns"] = observed_at_ns
    row["pop"] = origin.pop.encode()
    row["host"] = origin.host.encode()
    row["netns"] = netns
    row["sampled"] = origin.selection.one_in
    return row


def finish(rows: Rows, local: Addresses, remote: Addresses, origin: Origin) -> Rows:
    """Do what takes whole addresses: pass over sockets, hash, classify.

    Args:
        rows: that lack nothing else.
        local: whole local addresses of the rows.
        remote: whole remote addresses of the rows.
        origin: which sockets are passed over, and what is said of the others' addresses.

    Returns:
        The rows that are kept, moved to the front of `rows`.
    """
    if not origin.selection.everything:
        kept = np.flatnonzero(origin.selection.kept(rows, remote))
        raw = rows.view(np.uint8).reshape(-1, ROW_LENGTH)
        raw[: len(kept)] = raw[kept]
        rows, local, remote = rows[: len(kept)], local.at(kept), remote.at(kept)
    if origin.pseudonyms:
        rows["remote_hash"] = origin.pseudonyms.of(remote)
    if origin.classifier:
        rows["traffic_class"] = origin.classifier.classify(local, remote)
    return rows


def whole_addresses(rows: Rows) -> tuple[Addresses, Addresses]:
    """The local and the remote addresses of rows, taken as whole ones."""
    local, remote = (
        Addresses(*(rows.view(_HALVES[side])[half].astype(np.uint64) for half in ("high", "low")))
        for side in ("local", "remote")
    )
    return local, remote


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
