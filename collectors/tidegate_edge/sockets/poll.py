"""One poll: every TCP socket of the kernel as rows, in bounded memory."""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate_edge.errors import MISSING_PART, Failure

from .arena import Arena
from .decode import Rows
from .messages import find_messages
from .netlink import CONNECTED, Broken, SocketDiag
from .rows import Origin, make_rows

ATTEMPTS: Final = 3

# 506 bytes each: 253 MB of rows.
MAX_SOCKETS: Final = 500_000


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll saw.

    Attributes:
        rows: in as many arrays as the dump filled buffers.
        damaged: messages, or rests of datagrams, that could not be read.
        left_out: sockets beyond the limit.
        retries: dumps that were thrown away because the kernel lost or changed part of them.
        interrupted: the kernel marked the dump that was kept as inconsistent.
        passed_over: sockets that are excluded or not in the sample.
    """

    rows: tuple[Rows, ...]
    damaged: int
    left_out: int
    retries: int
    interrupted: bool
    passed_over: int = 0


def poll(
    diag: SocketDiag,
    origin: Origin,
    arena: Arena,
    *,
    states: int = CONNECTED,
    max_sockets: int = MAX_SOCKETS,
) -> Poll:
    """Dump all sockets and make rows of them.

    A dump that the kernel could not keep consistent is repeated, three times at most; the last inconsistent one
    is kept and marked.

    Args:
        diag: where the sockets are read.
        origin: what every row carries.
        arena: its memory is handed out again: the rows of the poll before are overwritten.
        states: a bit for each TCP state wanted.
        max_sockets: rows kept; the rest is counted.

    Raises:
        Failure: the kernel can't be asked, or lost part of every dump.
    """
    for attempt in range(ATTEMPTS):
        try:
            seen = _once(diag, origin, arena, states, max_sockets, attempt)
        except Broken as broken:
            diag.reopen()
            lost = broken
            continue
        if not seen.interrupted or attempt == ATTEMPTS - 1:
            return seen
    raise Failure(f"{ATTEMPTS} dumps of the sockets were lost: {lost}", exit_code=MISSING_PART)


def _once(
    diag: SocketDiag, origin: Origin, arena: Arena, states: int, max_sockets: int, retries: int
) -> Poll:
    words = np.frombuffer(arena.buffer, "<u4")
    arena.rewind()
    rows: list[Rows] = []
    kept = damaged = left_out = passed_over = 0
    interrupted = False
    observed_at_ns = time.time_ns()
    for datagrams in diag.dump(states, arena.buffer):
        if kept >= max_sockets:
            left_out += len(find_messages(words, datagrams).starts)
            continue
        batch = make_rows(words, datagrams, origin, observed_at_ns, arena.rows, diag.netns_inode)
        arena.give_back(batch.passed_over)
        rows.append(batch.rows[: max_sockets - kept])
        kept += len(rows[-1])
        left_out += len(batch.rows) - len(rows[-1])
        passed_over += batch.passed_over
        damaged += batch.damaged
        interrupted |= batch.interrupted
    return Poll(tuple(rows), damaged, left_out, retries, interrupted, passed_over)
