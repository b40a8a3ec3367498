"""Which rows of which host's spool have come already, by which is told what a host sends again.

The collector numbers a spool's rows and says in each message's headers which it holds. A message that comes again
has numbers that have come, in whatever partition: a host moves to another one when a topic gets more of them.
Pure: the same messages after the same state give the same answers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

Headers = Mapping[str, str | bytes | None]
Run = tuple[int, int]
"""Rows by number, from the first until before the second."""

MAX_SPOOLS: Final = 100_000
MAX_RUNS: Final = 64
"""A run ends where rows were dropped. What comes again is mostly the eight messages that a host had in flight."""

_SPOOL: Final = re.compile(rb"[0-9a-f]{32}")
_NUMBER: Final = re.compile(rb"[0-9]{1,20}")
_MAX_ROW: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Origin:
    """Which rows of which spool a message holds."""

    spool: str
    rows: Run


@dataclass(frozen=True, slots=True)
class Spool:
    """What has come of a spool.

    Attributes:
        runs: rows, rising, with gaps between them; the `MAX_RUNS` highest.
        newest_ns: Unix time of the latest row.
    """

    runs: tuple[Run, ...] = ()
    newest_ns: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """What a message adds.

    Attributes:
        spool: with the message.
        fresh: those of its rows that had not come.
        gone_back: numbers that had come are given to rows that are newer than all that came: all of them are fresh.
    """

    spool: Spool
    fresh: tuple[Run, ...]
    gone_back: bool


class Spools:
    """What is known of each spool; beyond `MAX_SPOOLS` the one that was silent for longest is forgotten.

    Args:
        known: the one that was silent for longest first.
    """

    def __init__(self, known: Iterable[tuple[str, Spool]] = ()) -> None:
        self._known: Final = dict(known)

    def __getitem__(self, name: str) -> Spool:
        return self._known.get(name, Spool())

    def __setitem__(self, name: str, spool: Spool) -> None:
        self._known.pop(name, None)
        self._known[name] = spool
        if len(self._known) > MAX_SPOOLS:
            del self._known[next(iter(self._known))]


def origin_of(headers: Headers, rows: int) -> Origin | None:
    """What a message's headers say, if they make sense for so many rows; else None."""
    said = {name: value for name, value in headers.items() if isinstance(value, bytes)}
    if not _SPOOL.fullmatch(said.get("spool", b"")):
        return None
    if not all(_NUMBER.fullmatch(said.get(name, b"")) for name in ("row", "rows")):
        return None
    first, count = int(said["row"]), int(said["rows"])
    if not rows or count != rows or first + count > _MAX_ROW:
        return None
    return Origin(said["spool"].decode(), (first, first + count))


def take(known: Spool, rows: Run, newest_ns: int) -> Taken:
    """Add a message's rows to a spool.

    Args:
        known: the spool before.
        rows: of the message; at least one.
        newest_ns: Unix time of the latest of them.
    """
    fresh = tuple(_between(known.runs, rows))
    # What comes again is no newer than when it came first. In doubt rows are kept.
    gone_back = fresh != (rows,) and newest_ns > known.newest_ns
    runs = known.runs
    if gone_back:
        runs, fresh = tuple((first, min(end, rows[0])) for first, end in runs if first < rows[0]), (rows,)
    merged = tuple(_merged([*runs, rows]))[-MAX_RUNS:]
    return Taken(Spool(merged, max(known.newest_ns, newest_ns)), fresh, gone_back)


def _between(runs: Iterable[Run], rows: Run) -> Iterator[Run]:
    """The parts of `rows` that no run holds."""
    at, end = rows
    for first, after in runs:
        if at < min(first, end):
            yield at, min(first, end)
        at = max(at, after)
    if at < end:
        yield at, end


def _merged(runs: Iterable[Run]) -> Iterator[Run]:
    """The same rows in rising runs with gaps between them."""
    current: Run | None = None
    for first, end in sorted(runs):
        if current is None:
            current = first, end
        elif first <= current[1]:
            current = current[0], max(end, current[1])
        else:
            yield current
            current = first, end
    if current is not None:
        yield current
