"""Closes windows: samples of one step become one row a prefix, with its rank in its POP, once a POP.

A window is [t, t + step), aligned to the Unix epoch. What shapes its rows (metric, prefix lengths, traffic,
where, step, rank, samples) is the view; require, exclude and hold work on closed windows and may change freely,
but for an exclude by a metric that not every window has (`metrics.further`).
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidegate_dsl.model import Condition, Select

from tidegate.history import drop_from
from tidegate.json_insertion import insert_json
from tidegate.metrics import (
    ALWAYS,
    METRICS,
    PPM,
    Column,
    Metric,
    columns,
    further,
    window_columns,
)
from tidegate.watermarks import floor_to

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

US: Final = 1_000_000
_CLOSED: Final = ("view", "window_start", "pop", "rows", "step_s")
_COMPARISON: Final = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "="}
_SORT: Final = {"bottom": "arraySort", "top": "arrayReverseSort"}
_IN_SHARE: Final = {"bottom": "<=", "top": ">="}
_TRAFFIC: Final = frozenset({"client", "pop_to_pop", "intra_pop", "origin"})
_MISSING: Final = "toUnixTimestamp(bucket) IN {missing:Array(UInt32)}"


def view_of(select: Select, extra: frozenset[str] = frozenset()) -> str:
    """16 hex digits that name the windows of a select: equal where its windows would be equal.

    Args:
        select: whose windows.
        extra: metrics that they must hold beside those of the select's own clauses; see `metrics.watched`.
    """
    rank = select.rank
    shape: list[object] = [
        select.metric,
        select.prefix_length_ipv4,
        select.prefix_length_ipv6,
        select.traffic,
        sorted((c.metric, c.comparison, c.value) for c in select.where),
        select.step_us,
        rank.share_ppm,
        _min_samples(select),
    ]
    # What came later is named only where it is used: windows that are closed already keep their name.
    if rank.side == "top" and rank.share_ppm is not None:
        shape.append("top")
    if rank.absolute:
        shape.append([rank.absolute.comparison, rank.absolute.value])
    shape += further(select, extra)
    return hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:16]


def lookback(select: Select, mark: datetime) -> list[datetime]:
    """Starts of the select's windows that end at or before `mark`, oldest first."""
    end = floor_to(mark, select.step_us)
    step = timedelta(microseconds=select.step_us)
    return [end - step * back for back in range(select.windows, 0, -1)]


def close(
    client: "Client",
    select: Select,
    mark: datetime,
    extra: frozenset[str] = frozenset(),
    pops: Collection[str] | None = None,
) -> int:
    """Close every window of the lookback that is not closed yet; returns how many.

    A crash leaves either unregistered windows, whose rows are removed and made again, or nothing.

    Args:
        client: of an open and migrated store.
        select: whose windows.
        mark: the watermark; the lookback ends there.
        extra: as in `view_of`.
        pops: whose; None: of every POP that there is telemetry of.
    """
    view = view_of(select, extra)
    missing = _missing(client, view, lookback(select, mark), pops)
    if not missing:
        return 0
    starts = sorted({start for windows in missing for start in windows})
    drop_from(client, view, datetime.fromtimestamp(starts[0], UTC))
    for windows, of_pops in missing.items():
        _close_together(client, select, extra, windows, of_pops)
    return len(starts)


def _missing(
    client: "Client", view: str, wanted: list[datetime], pops: Collection[str] | None
) -> dict[tuple[int, ...], list[str]]:
    """POPs by which of the wanted windows, as Unix times, are not closed for them: mostly all lack the same one."""
    if pops is None:
        pops = [
            pop for (pop,) in client.query("SELECT DISTINCT toString(pop) FROM socket_samples").result_rows
        ]
    closed = client.query(
        "SELECT toString(pop), groupUniqArray(toUnixTimestamp(window_start)) FROM closed_windows"
        " WHERE view = {view:String} AND window_start BETWEEN {from:DateTime('UTC')} AND {to:DateTime('UTC')}"
        " GROUP BY pop",
        parameters={"view": view, "from": wanted[0], "to": wanted[-1]},
    )
    done = {pop: set(starts) for pop, starts in closed.result_rows}
    of_all = done.get("", set())  # closed for every POP, by a version that knew no other way
    starts = [int(start.timestamp()) for start in wanted]
    found: dict[tuple[int, ...], list[str]] = {}
    for pop in sorted(pops):
        lacking = tuple(s for s in starts if s not in of_all and s not in done.get(pop, ()))
        if lacking:
            found.setdefault(lacking, []).append(pop)
    return found


def _close_together(
    client: "Client", select: Select, extra: frozenset[str], missing: Sequence[int], pops: Sequence[str]
) -> None:
    """Close the same windows of some POPs: rows first, then the entry that they are closed."""
    view, step_s = view_of(select, extra), select.step_us // US
    parameters = {
        "view": view,
        "missing": list(missing),
        "pops": pops,
        "from_ns": missing[0] * 10**9,
        "to_ns": (missing[-1] + step_s) * 10**9,
    }
    leftover = (
        "view = {view:String} AND pop IN {pops:Array(String)}"
        " AND toUnixTimestamp(window_start) IN {missing:Array(UInt32)}"
    )
    if client.query(
        f"SELECT count() FROM prefix_windows WHERE {leftover}", parameters=parameters
    ).result_rows[0][0]:
        client.command(f"DELETE FROM prefix_windows WHERE {leftover}", parameters=parameters)
    # Counted before they are read: a sample that comes between the two is told as late, never left untold.
    counted = client.query(
        f"SELECT toString(pop), toUnixTimestamp({_bucket(select, 'observed_at')}) AS start, count()"
        f" FROM socket_samples WHERE {_within('observed_at')} GROUP BY pop, start",
        parameters=parameters,
    ).result_rows
    rows = {(pop, start): count for pop, start, count in counted}
    client.command(_close_sql(select, extra), parameters=parameters)
    closed = ([view, start, pop, rows.get((pop, start), 0), step_s] for pop in pops for start in missing)
    insert_json(client, "closed_windows", _CLOSED, closed)


def _close_sql(select: Select, extra: frozenset[str]) -> str:
    """One pass over the samples; ranks are found inside each (POP, window)'s own array, so no sample is joined.

    Every piece comes from the tables of `metrics` or is an integer of the checked policy.
    """
    measured = METRICS[select.metric]
    asked = (*ALWAYS, *further(select, extra))
    names = ["prefix", "prefix_length", "samples", *window_columns(select, extra), "value"]
    unpacked = ", ".join(f"row.{i} AS {name}" for i, name in enumerate(names, 1))
    traffic = select.traffic if select.traffic in _TRAFFIC else ""
    where = "".join(f" AND {_sample_condition(c)}" for c in select.where)
    of_samples = _by_prefix(
        select,
        columns(asked, "socket_samples"),
        "socket_samples",
        "observed_at",
        f"traffic_class = '{traffic}' AND {measured.known}{where}",
    )
    return f"""
INSERT INTO prefix_windows (view, pop, window_start, threshold, member, {", ".join(names)})
SELECT {{view:String}}, pop, window_start, threshold, {_member(select)} AS member, {unpacked}
FROM (
    SELECT pop, window_start, {_threshold(select)} AS threshold, groupArray(({", ".join(names)})) AS rows
    FROM (
        SELECT *, toUInt64({_window_value(measured)}) AS value
        FROM ({of_samples} WHERE samples >= {_min_samples(select)}) AS sampled{_joined(select, asked)}
    )
    GROUP BY pop, window_start
)
ARRAY JOIN rows AS row
"""


def _by_prefix(select: Select, kept: Mapping[str, Column], table: str, time: str, where: str) -> str:
    """Rows of a table that pass `where`, aggregated by POP, window and prefix."""
    aggregates = "".join(f", {column.window} AS w_{name}" for name, column in kept.items())
    renamed = "".join(f", w_{name} AS {name}" for name in kept)
    return f"""
SELECT pop, window_start, prefix, prefix_length, samples{renamed}
FROM (
    SELECT pop, bucket AS window_start, prefix, prefix_length, count() AS samples{aggregates}
    FROM (
        SELECT *, {_bucket(select, time)} AS bucket,
            IPv6CIDRToRange(remote_address, 96).1 = toIPv6('::ffff:0.0.0.0') AS is_ipv4,
            toUInt8(is_ipv4 ? {96 + select.prefix_length_ipv4} : {select.prefix_length_ipv6}) AS prefix_length,
            IPv6CIDRToRange(remote_address, prefix_length).1 AS prefix
        FROM {table} WHERE {_within(time)} AND {where}
    )
    WHERE remote_prefix_length >= prefix_length AND {_MISSING}
    GROUP BY pop, window_start, prefix, prefix_length
)"""


def _joined(select: Select, asked: Sequence[str]) -> str:
    """What other tables know of an observed prefix or of its POP: one row at most a prefix and window."""
    text = ""
    if kept := columns(asked, "transfers"):
        transfers = _by_prefix(select, kept, "transfers", "finished_at", "true")
        text += f" LEFT JOIN (SELECT * EXCEPT (samples) FROM ({transfers})) AS of_transfers"
        text += " USING (pop, window_start, prefix, prefix_length)"
    if kept := columns(asked, "host_health"):
        aggregates = ", ".join(f"{column.window} AS {name}" for name, column in kept.items())
        text += f"""
        LEFT JOIN (
            SELECT pop, {_bucket(select, "observed_at")} AS window_start, {aggregates}
            FROM host_health WHERE {_within("observed_at")} GROUP BY pop, window_start
        ) AS of_hosts USING (pop, window_start)"""
    return text


def _window_value(measured: Metric) -> str:
    """What is ranked; a ratio rounded down."""
    names = [column.name for column in measured.columns]
    return f"intDiv(toUInt128({names[0]}) * {PPM}, {names[1]})" if measured.lower else names[0]


def _threshold(select: Select) -> str:
    """The value that `explain` shows beside a window's own: that of the rank, or the absolute one."""
    rank = select.rank
    if rank.share_ppm is None:
        return f"toUInt64({rank.absolute.value if rank.absolute else 0})"
    position = f"intDiv(count() * {rank.share_ppm} + {PPM - 1}, {PPM})"
    return f"{_SORT[rank.side]}(groupArray(value))[{position}]"


def _member(select: Select) -> str:
    rank = select.rank
    tests = [f"value {_IN_SHARE[rank.side]} threshold"] if rank.share_ppm is not None else []
    if rank.absolute:
        names = [column.name for column in METRICS[select.metric].columns]
        tests.append(_compared(rank.absolute, *names))
    return " AND ".join(tests)


def _sample_condition(condition: Condition) -> str:
    metric = METRICS[condition.metric]
    parts = [metric.value] if metric.lower is None else [metric.value, metric.lower]
    return f"({metric.known} AND {_compared(condition, *parts)})"


def _compared(condition: Condition, value: str, lower: str | None = None) -> str:
    """A comparison of a value, or of a ratio's two numbers as they are: nothing is rounded."""
    comparison, bound = _COMPARISON[condition.comparison], int(condition.value)
    if lower is None:
        return f"{value} {comparison} {bound}"
    return f"toUInt128({value}) * {PPM} {comparison} {bound} * toUInt128({lower})"


def _bucket(select: Select, time: str) -> str:
    step_s = select.step_us // US
    return f"toDateTime(intDiv(toUnixTimestamp64Nano({time}), {step_s * 10**9}) * {step_s}, 'UTC')"


def _within(time: str) -> str:
    return (
        f"pop IN {{pops:Array(String)}} AND {time} >= fromUnixTimestamp64Nano({{from_ns:Int64}}, 'UTC')"
        f" AND {time} < fromUnixTimestamp64Nano({{to_ns:Int64}}, 'UTC')"
    )


def _min_samples(select: Select) -> int:
    return select.min_samples.value if select.min_samples else 1
