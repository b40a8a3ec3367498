"""Where the messages of a buffer of netlink datagrams begin.

A dump's messages all carry the dump's sequence number, so one comparison over the whole buffer finds every
candidate, and the lengths in the messages prove that the candidates are the messages: each must end where the
next begins. Where that proof fails, the datagrams are walked one message at a time.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .kernel import HEADER_LENGTH

Words = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.intp]

_HEADER_WORDS: Final = HEADER_LENGTH // 4
_SEQUENCE_WORD: Final = 2


class Messages(NamedTuple):
    """The messages found.

    Attributes:
        starts: of each message, in words of four bytes.
        lengths: of each message as its header states it, bytes; no message reaches past the last datagram.
        damaged: datagrams whose rest could not be read because a length in it was impossible.
    """

    starts: Positions
    lengths: npt.NDArray[np.uint32]
    damaged: int


def find_messages(words: Words, datagrams: Sequence[tuple[int, int]]) -> Messages:
    """The messages of datagrams that lie one behind the other.

    Args:
        words: the buffer as little-endian words of four bytes.
        datagrams: begin and end of each datagram, bytes; begins are multiples of four.
    """
    if not datagrams:
        return Messages(np.empty(0, np.intp), np.empty(0, np.uint32), 0)
    begin, end = datagrams[0][0], datagrams[-1][1]
    if end - begin >= HEADER_LENGTH and end % 4 == 0:
        found = _scan(words, begin // 4, end // 4)
        if found is not None:
            return found
    return _walk(words, datagrams)


def _scan(words: Words, begin: int, end: int) -> Messages | None:
    """Every message from one comparison, or None if lengths and candidates do not agree."""
    part = words[begin:end]
    starts = np.flatnonzero(part == part[_SEQUENCE_WORD]) - _SEQUENCE_WORD
    lengths = part.take(starts)
    ends = starts + ((lengths.astype(np.intp) + 3) >> 2)
    chained = starts[0] == 0 and ends[-1] == len(part) and bool((ends[:-1] == starts[1:]).all())
    if not chained or bool((lengths < HEADER_LENGTH).any()):
        return None
    return Messages(starts + begin, lengths, 0)


def _walk(words: Words, datagrams: Sequence[tuple[int, int]]) -> Messages:
    starts: list[int] = []
    lengths: list[int] = []
    damaged = 0
    for begin, end in datagrams:
        at = begin // 4
        while at * 4 < end:
            room = end - at * 4
            length = int(words[at]) if room >= HEADER_LENGTH else 0
            if not HEADER_LENGTH <= length <= room:
                damaged += 1
                break
            starts.append(at)
            lengths.append(length)
            at += (length + 3) // 4
    return Messages(np.array(starts, np.intp), np.array(lengths, np.uint32), damaged)
