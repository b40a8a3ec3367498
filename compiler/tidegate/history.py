"""Histories: of each prefix, the last 128 closed windows as two masks, carried forward window by window.

Of a prefix that was a member often, the values of its windows are carried too, so that selection reads one row a
prefix and not its windows. A history is a pure function of closed windows, so that it may be lost at any time:
selection then reads the windows themselves, and the next run makes it again.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

WINDOWS: Final = 128  # of a mask; dsl/SPEC.md allows no longer lookback
# As many values as windows were observed, or none: then selection reads the windows.
HAS_VALUES: Final = "delivery_rate.size0 != 0"
_KEY: Final = "pop, prefix, prefix_length"
_BEFORE: Final = "view = {view:String} AND window_start = toDateTime({before:UInt32}, 'UTC')"
_COUNT: Final = """
SELECT count() FROM prefix_histories
WHERE view = {view:String} AND window_start = toDateTime({newest:UInt32}, 'UTC')
"""
_IS_WHOLE: Final = f"""
SELECT count() FROM whole_histories
WHERE view = {{view:String}} AND window_start = toDateTime({{newest:UInt32}}, 'UTC') AND rows = ({_COUNT})
"""  # noqa: S608 - of our own text
_REGISTER: Final = f"""
INSERT INTO whole_histories (view, window_start, rows)
SELECT {{view:String}}, toDateTime({{newest:UInt32}}, 'UTC'), ({_COUNT})
"""
_WHOLE: Final = """
SELECT toUnixTimestamp(window_start) FROM whole_histories INNER JOIN (
    SELECT window_start, count() AS found FROM prefix_histories WHERE view = {view:String} GROUP BY window_start
) AS stored USING window_start
WHERE view = {view:String} AND rows = found
"""
_STORED: Final = (
    "SELECT DISTINCT toUnixTimestamp(window_start) FROM prefix_histories WHERE view = {view:String}"
)
_DROP: Final = """
ALTER TABLE prefix_histories
DROP PARTITION tuple(toFixedString({view:String}, 16), toDateTime({start:UInt32}, 'UTC'))
"""
_FROM: Final = (
    "FROM whole_histories WHERE view = {view:String} AND window_start >= toDateTime({first:UInt32}, 'UTC')"
)


def keep(client: "Client", view: str, newest: datetime, step_us: int, values: Collection[str]) -> None:
    """Make the history that ends with a window, from the latest one before it where there is one.

    Of the view's other histories only that one is kept. A crash leaves rows that are not registered, or nothing.

    Args:
        client: of a store in which the windows are closed that any select may look back on from `newest`.
        view: of `windows.view_of`.
        newest: start of the last closed window.
        step_us: of the windows.
        values: the columns that the view's windows have a value in.
    """
    step = timedelta(microseconds=step_us)
    whole = _starts(client, _WHOLE, view)
    if newest in whole:
        return
    oldest = newest - step * WINDOWS
    before = max((start for start in whole if oldest < start < newest), default=None)
    _drop(client, view, _starts(client, _STORED, view) - {before})
    parameters = {
        "view": view,
        "newest": _seconds(newest),
        "before": _seconds(before or oldest),
        "oldest": _seconds(oldest),
        "step_s": int(step.total_seconds()),
    }
    if before is None:
        client.command(_insert(values, _from_windows(values, "1")), parameters=parameters)
    else:
        client.command(_insert(values, _carried(values)), parameters=parameters)
        client.command(_insert(values, _from_windows(values, _LEFT_OUT)), parameters=parameters)
    client.command(_REGISTER, parameters=parameters)


def is_kept(client: "Client", view: str, newest: datetime) -> bool:
    """Whether the history that ends with a window can be read."""
    parameters = {"view": view, "newest": _seconds(newest)}
    return bool(client.query(_IS_WHOLE, parameters=parameters).result_rows[0][0])


def drop_from(client: "Client", view: str, first: datetime) -> None:
    """Drop the histories that hold a window which is about to be closed, or closed again."""
    parameters = {"view": view, "first": _seconds(first)}
    if client.query(f"SELECT count() {_FROM}", parameters=parameters).result_rows[0][0]:
        client.command(f"DELETE {_FROM}", parameters=parameters)
        _drop(client, view, {start for start in _starts(client, _STORED, view) if start >= first})


def _starts(client: "Client", sql: str, view: str) -> set[datetime]:
    rows = client.query(sql, parameters={"view": view}).result_rows
    return {datetime.fromtimestamp(start, UTC) for (start,) in rows}


def _drop(client: "Client", view: str, starts: set[datetime]) -> None:
    for start in starts:
        client.command(_DROP, parameters={"view": view, "start": _seconds(start)})


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _often(seen: str, slow: str) -> str:
    """Whether a prefix was a member in a quarter of its windows: it may persist soon."""
    return f"bitCount({slow}) * 4 >= bitCount({seen})"


_TO_FILL: Final = f"{_often('observed', 'member')} AND NOT {HAS_VALUES}"
_LEFT_OUT: Final = f"({_KEY}) IN (SELECT {_KEY} FROM prefix_histories WHERE {_BEFORE} AND {_TO_FILL})"  # noqa: S608


def _insert(values: Collection[str], rows: str) -> str:
    """Insert rows (pop, prefix, prefix_length, seen, slow, an array of each value)."""
    names = _listed(values, "{}")
    return f"""
INSERT INTO prefix_histories (view, window_start, {_KEY}, observed, member{names})
SELECT {{view:String}}, toDateTime({{newest:UInt32}}, 'UTC'), {_KEY}, seen, slow{names} FROM ({rows})"""  # noqa: S608 - of our own columns


def _carried(values: Collection[str]) -> str:
    """The history before, moved by the windows since then, and those windows; not of whom values are to be filled."""
    moved = "toUInt8(intDiv({newest:UInt32} - {before:UInt32}, {step_s:UInt32}))"
    added = "arraySlice(arrayConcat(before.{0}, since.{0}), -toInt64(bitCount(seen)))"
    carried = _listed(values, f"if(has_values AND {_often('seen', 'slow')}, {added}, []) AS {{0}}")
    return f"""
SELECT {_KEY}, bitOr(before.seen, since.seen) AS seen, bitOr(before.slow, since.slow) AS slow{carried}
FROM (
    SELECT {_KEY}, bitShiftRight(observed, {moved}) AS seen, bitShiftRight(member, {moved}) AS slow,
        {HAS_VALUES} AS has_values, {_TO_FILL} AS to_fill{_listed(values, "{}")}
    FROM prefix_histories WHERE {_BEFORE}
) AS before
FULL JOIN (
    SELECT {_KEY}, seen, slow{_numbered(values, "sorted.{}")} FROM ({_by_prefix(values, "before", "1", "1")})
) AS since USING ({_KEY})
WHERE seen != 0 AND NOT to_fill"""  # noqa: S608 - of our own columns


def _from_windows(values: Collection[str], which: str) -> str:
    """The same of windows alone."""
    often = _often("seen", "slow")
    return f"""
SELECT {_KEY}, seen, slow{_numbered(values, "sorted.{}")} FROM ({_by_prefix(values, "oldest", which, often)})"""  # noqa: S608


def _by_prefix(values: Collection[str], after: str, which: str, holds_values: str) -> str:
    """Rows (pop, prefix, prefix_length, seen, slow, sorted: an array of (start, each value)) of windows after one."""
    ago = "toUInt8(intDiv({newest:UInt32} - toUnixTimestamp(window_start), {step_s:UInt32}))"
    bit = f"bitShiftLeft(toUInt128(1), 127 - {ago})"
    return f"""
SELECT {_KEY}, groupBitOr({bit}) AS seen, groupBitOrIf({bit}, member = 1) AS slow,
    arraySort(if({holds_values}, groupArray((window_start{_listed(values, "{}")})), [])) AS sorted
FROM prefix_windows
WHERE view = {{view:String}} AND {which}
    AND window_start > toDateTime({{{after}:UInt32}}, 'UTC') AND window_start <= toDateTime({{newest:UInt32}}, 'UTC')
GROUP BY {_KEY} SETTINGS optimize_aggregation_in_order = 1"""  # noqa: S608 - of our own columns


def _listed(values: Collection[str], form: str) -> str:
    return "".join(f", {form.format(name)}" for name in values)


def _numbered(values: Collection[str], form: str) -> str:
    """Each value of `sorted`, whose tuples begin with the window."""
    return "".join(f", {form.format(number)} AS {name}" for number, name in enumerate(values, 2))
