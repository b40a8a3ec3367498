"""One poll: every TCP socket of the kernel as rows, in bounded memory."""

import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from tidegate_edge.errors import MISSING_PART, Failure

from .arena import Arena
from .messages import find_messages
from .netlink import CONNECTED, Broken, SocketDiag
from .part import NO_ROWS, Given, Part, others
from .rows import Origin, make_rows

ATTEMPTS: Final = 3

# 506 bytes each: 253 MB of rows.
MAX_SOCKETS: Final = 500_000


def poll(
    diag: SocketDiag,
    origin: Origin,
    arena: Arena,
    *,
    states: int = CONNECTED,
    max_sockets: int = MAX_SOCKETS,
    given: Given | None = None,
) -> Iterator[Part]:
    """Dump all sockets and make rows of them.

    A dump of which the kernel lost part, or that it could not keep consistent, is repeated, three times at most in
    all; a repetition gives only the sockets that were not given yet. So a poll gives no socket twice.

    Args:
        diag: where the sockets are read.
        origin: what every row carries.
        arena: where the rows of a part lie.
        states: a bit for each TCP state wanted.
        max_sockets: rows given, with those of `given`; the rest is counted.
        given: sockets of which another reader gave rows in this poll.

    Yields:
        The parts of the poll, the last without rows.

    Raises:
        Failure: the kernel can't be asked, or lost part of every dump. The rows given before are right.
    """
    given = Given() if given is None else given
    for attempt in range(ATTEMPTS):
        try:
            totals = yield from _once(diag, origin, arena, states, max_sockets, given)
        except Broken as broken:
            lost = broken
            continue
        if not totals.interrupted or attempt == ATTEMPTS - 1:
            yield replace(totals, retries=attempt)
            return
    raise Failure(f"{ATTEMPTS} dumps of the sockets were lost: {lost}", exit_code=MISSING_PART)


def _once(
    diag: SocketDiag, origin: Origin, arena: Arena, states: int, max_sockets: int, given: Given
) -> Generator[Part, None, Part]:
    """The rows of one dump, and what was counted."""
    words = np.frombuffer(arena.buffer, "<u4")
    earlier = given.cookies()
    left_out = damaged = passed_over = 0
    interrupted = False
    observed_at_ns = time.time_ns()
    for datagrams in diag.dump(states, arena.buffer):
        if given.count >= max_sockets:
            left_out += len(find_messages(words, datagrams).starts)
            continue
        batch = make_rows(
            words, datagrams, origin, observed_at_ns, arena.rows, diag.netns_inode, arena.layouts
        )
        passed_over += batch.passed_over
        damaged += batch.damaged
        interrupted |= batch.interrupted
        found = others(batch.rows, earlier)
        rows = found[: max_sockets - given.count]
        left_out += len(found) - len(rows)
        given.add(rows)
        yield Part(rows)
    return Part(NO_ROWS, damaged, left_out, interrupted=interrupted, passed_over=passed_over)
