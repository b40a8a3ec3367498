"""From rows as they lie to a block that can be inserted, in one pass over their bytes."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW
from tidegate.telemetry.admission import EARLIEST_NS, NAMES, NUMBERS, Judgement, judge
from tidegate.telemetry.columns import Array, Names, gather, names_of
from tidegate.telemetry.native import NativeBlock


def check(rows: npt.NDArray[np.void], now_ns: int, earliest_ns: int = EARLIEST_NS) -> Judgement:
    """Which rows may enter; arguments as those of `judge`."""
    columns = {name: np.empty(len(rows), ROW[name]) for name in (*NUMBERS, *NAMES)}
    gather(rows, columns)
    return judge(columns, _names(columns), now_ns, earliest_ns)


def decode(
    rows: npt.NDArray[np.void], into: NativeBlock, now_ns: int, earliest_ns: int = EARLIEST_NS
) -> Judgement:
    """Fill a block with the rows that may enter; arguments as those of `judge`.

    Args:
        rows: of schemas/rows.py, their frame in place.
        into: what was in it is gone, also where no row may enter.
        now_ns: Unix time.
        earliest_ns: Unix time.
    """
    columns = into.reserve(len(rows))
    gather(rows, columns)
    names = _names(columns)
    judged = judge(columns, names, now_ns, earliest_ns)
    if judged.all_good:
        into.complete(names)
    elif judged.count:
        decode(_kept(rows, judged.good), into, now_ns, earliest_ns)
    return judged


def _names(columns: Mapping[str, Array]) -> dict[str, Names]:
    return {name: names_of(columns[name]) for name in NAMES}


def _kept(rows: npt.NDArray[np.void], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.void]:
    """Whole rows: numpy's own selection of records leaves out the bytes between the fields."""
    grid = rows.view(np.uint8).reshape(-1, rows.itemsize)
    return grid[good].reshape(-1).view(rows.dtype)
