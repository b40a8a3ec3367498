"""The SQL of measurement: a lookback of each prefix as two masks and its metrics, read in one of two ways.

Masks are of 128 bits, bit 0 the oldest window of the lookback, so that duty cycle and flap rate are bit counts. No
sketch is used: a sketch changes who is selected.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from tidegate_dsl.model import Select

from tidegate.history import HAS_VALUES, WINDOWS
from tidegate.metrics import PPM
from tidegate.windows import US, lookback, view_of

SPAN: Final = "view = {view:String} AND window_start BETWEEN {from:DateTime('UTC')} AND {to:DateTime('UTC')}"
PAIRS: Final = "bitCount(bitAnd(seen, bitShiftRight(seen, 1)))"
FLIPS: Final = "bitCount(bitAnd(bitXor(slow, bitShiftRight(slow, 1)), bitAnd(seen, bitShiftRight(seen, 1))))"
# IPv4 stands mapped, 96 bits longer (RFC 4291, 2.5.5.2).
CIDR: Final = (
    "if(startsWith(toString(prefix) AS address, '::ffff:') AND position(address, '.') != 0,"
    " concat(substring(address, 8), '/', toString(prefix_length - 96)),"
    " concat(address, '/', toString(prefix_length)))"
)

# A history has few rows, and each takes long: without these one thread reads and evaluates them all, or the arrays
# of values are sorted with their rows before they are evaluated.
IN_PARALLEL: Final = (
    " SETTINGS merge_tree_min_rows_for_concurrent_read = 8192, merge_tree_min_bytes_for_concurrent_read = 1,"
    " optimize_read_in_order = 0, query_plan_execute_functions_after_sorting = 0"
)


def span(select: Select, mark: datetime, extra: frozenset[str]) -> dict[str, Any]:
    """The parameters of `SPAN` and of what `from_windows` and `from_history` return."""
    starts = lookback(select, mark)
    return {
        "view": view_of(select, extra),
        "from": starts[0],
        "to": starts[-1],
        "start": int(starts[0].timestamp()),
    }


def requirements(select: Select) -> str:
    """Every `require` as SQL over the masks, compared as integers: no ratio is ever rounded."""
    tests = ["slow != 0"]
    if select.min_windows:
        tests.append(f"bitCount(seen) >= {select.min_windows.value}")
    if select.min_duty_cycle:
        tests.append(f"bitCount(slow) * {PPM} >= {select.min_duty_cycle.value * select.windows}")
    if select.max_flap_rate:
        tests.append(f"{FLIPS} * {PPM} <= {select.max_flap_rate.value} * {PAIRS}")
    return " AND ".join(tests)


def from_windows(select: Select, read: Iterable[str], where: str, having: str) -> str:
    """Rows (pop, prefix, prefix_length, seen, slow, whole, g_NAME of each column read) from closed windows alone.

    One pass over the lookback, in the order of the table's key.

    Args:
        select: whose windows.
        read: names of the columns of its metrics.
        where: which prefixes, by their key.
        having: which of them, by `seen` and `slow`.
    """
    index = f"toUInt8(intDiv(toUnixTimestamp(window_start) - {{start:UInt32}}, {select.step_us // US}))"
    bit = f"bitShiftLeft(toUInt128(1), {index})"
    gathered = "".join(f", groupArray({name}) AS g_{name}" for name in read)
    return f"""
SELECT pop, prefix, prefix_length, groupBitOr({bit}) AS seen, groupBitOrIf({bit}, member = 1) AS slow,
    1 AS whole{gathered}
FROM prefix_windows WHERE {SPAN} AND {where}
GROUP BY pop, prefix, prefix_length HAVING {having}
SETTINGS optimize_aggregation_in_order = 1"""  # noqa: S608 - of the checked policy


def from_history(select: Select, read: Iterable[str], where: str, having: str) -> str:
    """The same rows from the history that ends with the lookback; `whole` says whether a row has the values."""
    values = "".join(f", arraySlice({name}, -toInt64(bitCount(seen))) AS g_{name}" for name in read)
    return candidates(select, where, having, f", {HAS_VALUES} AS whole{values}")


def candidates(select: Select, where: str, having: str, values: str = "") -> str:
    """Rows (pop, prefix, prefix_length, seen, slow, and `values`) from the history that ends with the lookback."""
    cut = WINDOWS - select.windows
    return f"""
SELECT pop, prefix, prefix_length,
    bitShiftRight(observed, {cut}) AS seen, bitShiftRight(member, {cut}) AS slow{values}
FROM prefix_histories
PREWHERE view = {{view:String}} AND window_start = {{to:DateTime('UTC')}} AND seen != 0 AND {where} AND {having}"""  # noqa: S608 - of the checked policy


def without_values(select: Select, where: str, having: str) -> str:
    """The condition, on a key of windows, that it is of a candidate whose values the history does not hold."""
    keys = candidates(select, where, f"{having} AND NOT {HAS_VALUES}")
    return f"(pop, prefix, prefix_length) IN (SELECT pop, prefix, prefix_length FROM ({keys}))"  # noqa: S608
