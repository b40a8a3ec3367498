"""Where a socket's message holds its attributes, and which messages hold them at the same places.

Messages of one length mostly share one layout. The first of them is parsed attribute by attribute; every other
one must then agree with it in the header, the family, all attribute headers and the algorithm's name, which is
one comparison for the whole group. Those that do not agree are the next group. Layouts that were met before are
compared first, and nothing is parsed: the next part of a poll has mostly the same ones.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from . import kernel
from .messages import Messages, Positions, Words

_HEADER: Final = struct.Struct("<IHH")
_ATTRIBUTE: Final = struct.Struct("<HH")

# Ends of the fields that a row takes from tcp_info: a structure cut between them reads as the shorter one.
_INFO_ENDS: Final = sorted(
    {offset + np.dtype(fmt).itemsize for fmt, offset in kernel.TCP_INFO_FIELDS.values()}
    | {kernel.TCP_INFO_MIN_LENGTH}
)


class Span(NamedTuple):
    """Where a structure lies in a message, bytes; its length is 0 where the message has none."""

    at: int
    length: int


_ABSENT: Final = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the attributes of a message lie.

    Attributes:
        family: AF_INET or AF_INET6.
        interrupted: the kernel marked the dump as inconsistent (NLM_F_DUMP_INTR).
        info: struct tcp_info, as far as it holds whole fields.
        bbr: struct tcp_bbr_info.
        cgroup: id of the cgroup.
        algorithm: name of the congestion control, without NUL.
        proof: what every message of this layout has in common: offset in words, bits compared, their value.
    """

    family: int
    interrupted: bool
    info: Span
    bbr: Span
    cgroup: Span
    algorithm: bytes
    proof: tuple[tuple[int, int, int], ...]


class NotASocket(Exception):
    """The message is whole but no TCP socket's: a request, another message type, another family."""


class Damaged(Exception):
    """The message contradicts itself."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Messages sorted out by layout.

    Attributes:
        groups: each layout, with the indices of its messages.
        other: messages that are no socket's.
        damaged: messages that could not be read.
    """

    groups: tuple[tuple[Layout, Positions], ...]
    other: int
    damaged: int


Known = dict[int, list[Layout]]
"""Layouts that were met, by the length of their messages."""

_MOST_LENGTHS: Final = 64
_MOST_OF_A_LENGTH: Final = 16


def group_messages(words: Words, messages: Messages, known: Known | None = None) -> Grouping:
    """Sort messages by length and layout.

    Args:
        words: the buffer.
        messages: which lie within it.
        known: layouts that were met before. Those that are met now are added, as far as there is room.
    """
    known = {} if known is None else known
    if len(known) > _MOST_LENGTHS:
        known.clear()  # those that still come are met again
    groups: list[tuple[Layout, Positions]] = []
    other = damaged = 0
    for length, indices in _by_length(messages.lengths):
        rest = indices
        met = known.setdefault(length, [])
        untried = iter(met.copy())
        while len(rest):
            layout = next(untried, None)
            if layout is None:
                start = int(messages.starts[rest[0]])
                try:
                    layout = parse_layout(words[start : start + (length + 3) // 4].tobytes()[:length])
                except NotASocket:
                    other += 1
                    rest = rest[1:]
                    continue
                except Damaged:
                    damaged += 1
                    rest = rest[1:]
                    continue
                if len(met) < _MOST_OF_A_LENGTH:
                    met.append(layout)
            agree = _agree(words, messages.starts[rest], layout)
            if agree.any():
                groups.append((layout, rest if agree.all() else rest[agree]))
                rest = rest[~agree]
    return Grouping(tuple(groups), other, damaged)


def _by_length(lengths: npt.NDArray[np.uint32]) -> Iterator[tuple[int, Positions]]:
    if not len(lengths):
        return
    first = int(lengths[0])
    if bool((lengths == first).all()):
        yield first, np.arange(len(lengths))
        return
    for length in np.flatnonzero(np.bincount(lengths)).tolist():  # lengths are small: no need to sort
        yield length, np.flatnonzero(lengths == length)


def _agree(words: Words, starts: Positions, layout: Layout) -> npt.NDArray[np.bool_]:
    offset, bits, value = _columns(layout.proof)
    found = words.take(starts + offset, mode="clip")  # all lie within; it is a third faster than an index
    found &= bits
    agree: npt.NDArray[np.bool_] = (found == value).all(axis=0)
    return agree


@lru_cache(maxsize=_MOST_LENGTHS)
def _columns(
    proof: tuple[tuple[int, int, int], ...],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    offset, bits, value = np.array(proof, np.int64).T[:, :, np.newaxis]
    return offset, bits.astype(np.uint32), value.astype(np.uint32)


def parse_layout(message: bytes) -> Layout:
    """The layout of one message.

    Raises:
        NotASocket: a request, another type of message, or a family that is not the Internet's.
        Damaged: a length in it is impossible or an attribute is too short for its structure.
    """
    length, kind, flags = _HEADER.unpack_from(message)
    if kind not in kernel.SOCKET_TYPES or flags & kernel.NLM_F_REQUEST:
        raise NotASocket
    if length < kernel.ATTRIBUTES_AT:
        raise Damaged
    family = message[kernel.FAMILY_AT]
    if family not in (kernel.AF_INET, kernel.AF_INET6):
        raise NotASocket

    found: dict[int, Span] = {}
    proven = [(4, 4), (kernel.FAMILY_AT, 1)]
    for kind, span in _attributes(message):
        found[kind] = span
        proven.append((span.at - kernel.ATTRIBUTE_HEADER_LENGTH, kernel.ATTRIBUTE_HEADER_LENGTH))
    info = found.get(kernel.INET_DIAG_INFO, _ABSENT)
    bbr = found.get(kernel.INET_DIAG_BBRINFO, _ABSENT)
    cgroup = found.get(kernel.INET_DIAG_CGROUP_ID, _ABSENT)
    name = found.get(kernel.INET_DIAG_CONG, _ABSENT)
    if info.at and info.length < kernel.TCP_INFO_MIN_LENGTH:
        raise Damaged
    if bbr.at and bbr.length < kernel.BBR_INFO_LENGTH:
        raise Damaged
    if cgroup.at and cgroup.length < kernel.CGROUP_ID_LENGTH:
        raise Damaged
    if name.length > kernel.ALGORITHM_LENGTH:
        raise Damaged
    name_end = name.at + name.length
    proven += [(at, min(4, name_end - at)) for at in range(name.at, name_end, 4)]
    return Layout(
        family=family,
        interrupted=bool(flags & kernel.NLM_F_DUMP_INTR),
        info=Span(info.at, max((end for end in _INFO_ENDS if end <= info.length), default=0)),
        bbr=Span(bbr.at, min(bbr.length, kernel.BBR_INFO_LENGTH)),
        cgroup=Span(cgroup.at, min(cgroup.length, kernel.CGROUP_ID_LENGTH)),
        algorithm=message[name.at : name_end].partition(b"\0")[0],
        proof=tuple(_word(message, at, size) for at, size in proven),
    )


def _word(message: bytes, at: int, size: int) -> tuple[int, int, int]:
    value = int.from_bytes(message[at : at + size], "little")
    return at // 4, (1 << 8 * size) - 1, value


def _attributes(message: bytes) -> Iterator[tuple[int, Span]]:
    """Type and payload of each attribute."""
    at = kernel.ATTRIBUTES_AT
    while at < len(message):
        if at + kernel.ATTRIBUTE_HEADER_LENGTH > len(message):
            raise Damaged
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if not kernel.ATTRIBUTE_HEADER_LENGTH <= length <= len(message) - at:
            raise Damaged
        start = at + kernel.ATTRIBUTE_HEADER_LENGTH
        yield kind & kernel.ATTRIBUTE_TYPE_MASK, Span(start, length - kernel.ATTRIBUTE_HEADER_LENGTH)
        at += (length + 3) & ~3
