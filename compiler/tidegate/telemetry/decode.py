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


def decode(
    pieces: Pieces, count: int, into: NativeBlock, now_ns: int, earliest_ns: int = EARLIEST_NS
) -> Judgement:
    """Fill a block with the rows that may enter; where none may, it is not complete.

    Args:
        pieces: rows.
        count: how many rows the pieces are.
        into: what was in it is gone.
        now_ns: Unix time.
        earliest_ns: Unix time.
    """
    columns = into.reserve(count)
    gather(pieces, columns)
    names = _names(columns)
    judged = judge(columns, names, now_ns, earliest_ns)
    if not judged.all_good:
        names = _names(into.keep(judged.good))
    if judged.count:
        into.complete(names)
    return judged


def _names(columns: Mapping[str, Array]) -> dict[str, Names]:
    return {name: names_of(columns[name]) for name in NAMES}
