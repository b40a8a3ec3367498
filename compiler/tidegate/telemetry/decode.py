"""From rows as they lie to a block that can be inserted, in one pass over their bytes."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW
from tidegate.telemetry.admission import EARLIEST_NS, NAMES, NUMBERS, Judgement, judge
from tidegate.telemetry.columns import Array, Names, gather, names_of
from tidegate.telemetry.native import NativeBlock

Pieces = Iterable[npt.NDArray[np.void]]  # of rows of schemas/rows.py, their frame in place


def check(pieces: Pieces, count: int, now_ns: int) -> Judgement:
    """Which rows may enter; arguments as those of `decode`."""
    columns = {name: np.empty(count, ROW[name]) for name in (*NUMBERS, *NAMES)}
    gather(pieces, columns)
    return judge(columns, _names(columns), now_ns)


def decode(pieces: Pieces, count: int, into: NativeBlock, now_ns: int) -> Judgement:
    """Fill a block with the rows that may enter; where none may, it is not complete.

    Args:
        pieces: rows.
        count: how many rows the pieces are.
        into: what was in it is gone.
        now_ns: Unix time.
    """
    into.reserve(count)
    for rows in pieces:
        into.add(rows)
    return admit(into, now_ns)


def admit(block: NativeBlock, now_ns: int, earliest_ns: int = EARLIEST_NS) -> Judgement:
    """Leave in a block the rows that may enter, and complete it; where none may, it is not complete.

    Args:
        block: its rows are added.
        now_ns: Unix time.
        earliest_ns: Unix time.
    """
    names = _names(block.columns)
    judged = judge(block.columns, names, now_ns, earliest_ns)
    if not judged.all_good:
        block.keep(judged.good)
        names = _names(block.columns)
    if judged.count:
        block.complete(names)
    return judged


def _names(columns: Mapping[str, Array]) -> dict[str, Names]:
    return {name: names_of(columns[name]) for name in NAMES}
