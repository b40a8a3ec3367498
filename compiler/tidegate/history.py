"""Histories: of each prefix, the last 128 closed windows as two masks, carried forward window by window.

A history is a pure function of closed windows, so that it may be lost at any time: selection then reads the windows
themselves, and the next run makes it again. It spares selection the walk through every window of every prefix.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

WINDOWS: Final = 128  # of a mask; dsl/SPEC.md allows no longer lookback
# The history before, moved by the windows since then, and those windows. Without one before they are all 128.
_CARRY: Final = """
INSERT INTO prefix_histories (view, window_start, pop, prefix, prefix_length, observed, member)
SELECT {view:String}, toDateTime({newest:UInt32}, 'UTC'), pop, prefix, prefix_length, seen, slow
FROM (
    SELECT pop, prefix, prefix_length, groupBitOr(was_seen) AS seen, groupBitOr(was_slow) AS slow
    FROM (
        WITH toUInt8(intDiv({newest:UInt32} - {before:UInt32}, {step_s:UInt32})) AS later
        SELECT pop, prefix, prefix_length,
            bitShiftRight(observed, later) AS was_seen, bitShiftRight(member, later) AS was_slow
        FROM prefix_histories
        WHERE view = {view:String} AND window_start = toDateTime({before:UInt32}, 'UTC')
        UNION ALL
        WITH toUInt8(intDiv({newest:UInt32} - toUnixTimestamp(window_start), {step_s:UInt32})) AS ago
        SELECT pop, prefix, prefix_length,
            bitShiftLeft(toUInt128(1), 127 - ago) AS was_seen, was_seen * prefix_windows.member AS was_slow
        FROM prefix_windows
        WHERE view = {view:String}
            AND window_start > toDateTime({before:UInt32}, 'UTC')
            AND window_start <= toDateTime({newest:UInt32}, 'UTC')
    )
    GROUP BY pop, prefix, prefix_length
    HAVING seen != 0
)
"""
_COUNT: Final = """
SELECT count() FROM prefix_histories
WHERE view = {view:String} AND window_start = toDateTime({newest:UInt32}, 'UTC')
"""
_REGISTERED: Final = """
SELECT rows FROM whole_histories
WHERE view = {view:String} AND window_start = toDateTime({newest:UInt32}, 'UTC')
"""
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


def keep(client: "Client", view: str, newest: datetime, step_us: int) -> None:
    """Make the history that ends with a window, from the latest one before it where there is one.

    Of the view's other histories only that one is kept. A crash leaves rows that are not registered, or nothing.

    Args:
        client: of a store in which the windows are closed that any select may look back on from `newest`.
        view: of `windows.view_of`.
        newest: start of the last closed window.
        step_us: of the windows.
    """
    step = timedelta(microseconds=step_us)
    whole = _starts(client, _WHOLE, view)
    if newest in whole:
        return
    oldest = newest - step * WINDOWS
    before = max((start for start in whole if oldest < start < newest), default=oldest)
    _drop(client, view, _starts(client, _STORED, view) - {before})
    parameters = {
        "view": view,
        "newest": _seconds(newest),
        "before": _seconds(before),
        "step_s": int(step.total_seconds()),
    }
    client.command(_CARRY, parameters=parameters)
    client.command(_REGISTER, parameters=parameters)


def is_kept(client: "Client", view: str, newest: datetime) -> bool:
    """Whether the history that ends with a window can be read."""
    parameters = {"view": view, "newest": _seconds(newest)}
    registered = client.query(_REGISTERED, parameters=parameters).result_rows
    return bool(registered) and client.query(_COUNT, parameters=parameters).result_rows[0] in registered


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
