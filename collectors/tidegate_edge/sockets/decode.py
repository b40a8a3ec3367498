"""Netlink datagrams of a socket dump to rows.

The work per socket is a handful of array operations: find the messages, group them by layout, gather a structure
of all messages into one array, copy it field by field. A message that contradicts itself is counted and left
out; no bytes make this raise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from . import kernel
from .addresses import Addresses
from .layout import Known, Layout, Span, group_messages
from .messages import Positions, Words, find_messages

Rows = npt.NDArray[np.void]

_MAPPED: Final = np.uint64(0xFFFF << 32)


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets found in a buffer, those of one layout side by side.

    Attributes:
        words: the buffer, in words of four bytes.
        starts: begin of each socket's message, in words.
        layouts: each layout, with the slice of `starts` that has it.
        other: messages that are no socket's.
        damaged: messages, or rests of datagrams, that could not be read.
    """

    words: Words
    starts: Positions
    layouts: tuple[tuple[Layout, slice], ...]
    other: int
    damaged: int

    @property
    def interrupted(self) -> bool:
        """The kernel marked a message as part of an inconsistent dump (NLM_F_DUMP_INTR)."""
        return any(layout.interrupted for layout, _ in self.layouts)


def find_sockets(words: Words, datagrams: Sequence[tuple[int, int]], known: Known | None = None) -> Sockets:
    """Find the sockets in datagrams that lie one behind the other.

    Args:
        words: the buffer as little-endian words of four bytes.
        datagrams: begin and end of each datagram, bytes; begins are multiples of four.
        known: layouts of earlier messages, and then of these too.
    """
    messages = find_messages(words, datagrams)
    found = group_messages(words, messages, known)
    groups = sorted(found.groups, key=lambda group: _order(group[0]))
    bounds = np.cumsum([0, *(len(indices) for _, indices in groups)]).tolist()
    order = np.concatenate([np.empty(0, np.intp), *(indices for _, indices in groups)])
    slices = [slice(begin, end) for begin, end in pairwise(bounds)]
    return Sockets(
        words,
        messages.starts[order],
        tuple((layout, part) for (layout, _), part in zip(groups, slices, strict=True)),
        found.other,
        found.damaged + messages.damaged,
    )


def _order(layout: Layout) -> tuple[int, int, int]:
    """Layouts whose columns are copied alike stand side by side."""
    return layout.info.length, layout.bbr.length, layout.family


def fill_rows(rows: Rows, sockets: Sockets) -> tuple[Addresses, Addresses]:
    """Write all that the kernel said into rows that are zero so far, except the addresses.

    Args:
        rows: as many as `sockets.starts`, of `tidegate_edge.schemas.rows.ROW`.
        sockets: as `find_sockets` gives them.

    Returns:
        The whole local addresses and the whole remote ones, in the order of the rows.
    """
    messages = _gather(sockets.words, sockets.starts, kernel.ATTRIBUTES_AT)
    _copy(rows, messages, kernel.MESSAGE_FIELDS)
    for layout, part in sockets.layouts:
        rows["congestion_control"][part] = layout.algorithm
    for part, info in _structures(sockets, lambda layout: layout.info):
        _copy(rows[part], info, kernel.TCP_INFO_FIELDS)
        for name, (at, shift, mask) in kernel.TCP_INFO_BITS.items():
            rows[name][part] = _bytes(info)[:, at] >> shift & mask
    for part, bbr in _structures(sockets, lambda layout: layout.bbr):
        _copy(rows[part], bbr, kernel.BBR_INFO_FIELDS)
    for part, cgroup in _structures(sockets, lambda layout: layout.cgroup):
        _copy(rows[part], cgroup, kernel.CGROUP_ID_FIELDS)
    return (
        _addresses(messages, sockets, kernel.LOCAL_ADDRESS_AT),
        _addresses(messages, sockets, kernel.REMOTE_ADDRESS_AT),
    )


def _gather(words: Words, at: Positions, length: int) -> Rows:
    """One structure of each message, side by side. `at` counts words; each structure lies within `words`."""
    every = max(len(words) - (length + 3) // 4 + 1, 0)
    windows = np.ndarray((every,), f"V{length}", words, strides=(4,))  # one window begins at each word
    return windows[at]


def _copy(rows: Rows, structures: Rows, fields: Mapping[str, tuple[str, int]]) -> None:
    """Copy those fields that the structures are long enough to have."""
    source = structures.view(_structure(structures.itemsize, tuple(fields.items())))
    for name in source.dtype.names or ():
        rows[name] = source[name]


@cache
def _structure(length: int, fields: tuple[tuple[str, tuple[str, int]], ...]) -> np.dtype[np.void]:
    held = [(name, fmt, at) for name, (fmt, at) in fields if at + np.dtype(fmt).itemsize <= length]
    return np.dtype(
        {
            "names": [name for name, _, _ in held],
            "formats": [fmt for _, fmt, _ in held],
            "offsets": [at for _, _, at in held],
            "itemsize": length,
        }
    )


def _structures(sockets: Sockets, span: Callable[[Layout], Span]) -> Iterator[tuple[slice, Rows]]:
    """One structure of all sockets that have it, one array for each of its lengths that occurs."""
    for length, run in groupby(sockets.layouts, key=lambda group: span(group[0]).length):
        members = list(run)
        if length:
            at = [sockets.starts[part] + span(layout).at // 4 for layout, part in members]
            part = slice(members[0][1].start, members[-1][1].stop)
            yield part, _gather(sockets.words, np.concatenate(at), length)


def _bytes(structures: Rows) -> npt.NDArray[np.uint8]:
    return structures.view(np.uint8).reshape(-1, structures.itemsize)


def _addresses(messages: Rows, sockets: Sockets, at: int) -> Addresses:
    high, low = np.zeros((2, len(messages)), np.uint64)
    table = _bytes(messages)[:, at : at + 16]
    for layout, part in sockets.layouts:
        if layout.family == kernel.AF_INET:
            low[part] = table[part, :4].view(">u4")[:, 0]
            low[part] |= _MAPPED
        else:
            high[part], low[part] = table[part].view(">u8").T
    return Addresses(high, low)
