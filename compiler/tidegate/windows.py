"""Closes windows: samples of one step become one row a prefix, with its rank in its POP, once.

A window is [t, t + step), aligned to the Unix epoch. What shapes its rows (metric, prefix lengths, traffic,
where, step, share, samples) is the view; require, exclude and hold work on closed windows and may change freely.
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidegate_dsl.model import Condition, Select

from tidegate.metrics import METRICS, PPM, RETRANSMIT_RATIO, RETRANSMITTED, SAMPLE_ONLY, SENT

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

US: Final = 1_000_000
_COMPARISON: Final = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "="}
_TRAFFIC: Final = frozenset({"client", "pop_to_pop", "intra_pop", "origin"})


def view_of(select: Select) -> str:
    """16 hex digits that name the windows of a select: equal where its windows would be equal."""
    shape = [
        select.metric,
        select.prefix_length_ipv4,
        select.prefix_length_ipv6,
        select.traffic,
        sorted((c.metric, c.comparison, c.value) for c in select.where),
        select.step_us,
        select.rank.share_ppm,
        _min_samples(select),
    ]
    return hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:16]


def floor_to(moment: datetime, step_us: int) -> datetime:
    """The latest step boundary at or before `moment`."""
    step_s = step_us // US
    return datetime.fromtimestamp(int(moment.timestamp()) // step_s * step_s, UTC)


def watermark(client: "Client", as_of: datetime, grace: timedelta, step_us: int) -> datetime | None:
    """End of the last window that can be closed, or None where there are no samples.

    Samples may arrive for `grace` after a window's end; no window is closed past the last sample's.
    """
    (last,) = client.query(
        "SELECT maxOrNull(toUnixTimestamp64Nano(observed_at)) FROM socket_samples"
        " WHERE observed_at < fromUnixTimestamp64Nano({as_of:Int64}, 'UTC')",
        parameters={"as_of": _ns(as_of)},
    ).result_rows[0]
    if last is None:
        return None
    end_of_data = datetime.fromtimestamp(last // 1_000_000_000 // (step_us // US) * (step_us // US), UTC)
    return min(floor_to(as_of - grace, step_us), end_of_data + timedelta(microseconds=step_us))


def lookback(select: Select, mark: datetime) -> list[datetime]:
    """Starts of the select's windows that end at or before `mark`, oldest first."""
    end = floor_to(mark, select.step_us)
    step = timedelta(microseconds=select.step_us)
    return [end - step * back for back in range(select.windows, 0, -1)]


def close(client: "Client", select: Select, mark: datetime) -> int:
    """Close every window of the lookback that is not closed yet; returns how many.

    A crash leaves either an unregistered window, whose rows are removed and made again, or nothing.
    """
    view = view_of(select)
    wanted = lookback(select, mark)
    parameters = {"view": view, "from": wanted[0], "to": wanted[-1]}
    closed = client.query(
        "SELECT DISTINCT toUnixTimestamp(window_start) FROM closed_windows"
        " WHERE view = {view:String} AND window_start BETWEEN {from:DateTime('UTC')} AND {to:DateTime('UTC')}",
        parameters=parameters,
    )
    done = {row[0] for row in closed.result_rows}
    missing = [int(start.timestamp()) for start in wanted if int(start.timestamp()) not in done]
    if not missing:
        return 0
    parameters = {"view": view, "missing": missing}
    leftover = "view = {view:String} AND toUnixTimestamp(window_start) IN {missing:Array(UInt32)}"
    if client.query(
        f"SELECT count() FROM prefix_windows WHERE {leftover}", parameters=parameters
    ).result_rows[0][0]:
        client.command(f"DELETE FROM prefix_windows WHERE {leftover}", parameters=parameters)
    step_s = select.step_us // US
    client.command(
        _close_sql(select),
        parameters=parameters | {"from_ns": missing[0] * 10**9, "to_ns": (missing[-1] + step_s) * 10**9},
    )
    client.command(
        "INSERT INTO closed_windows (view, window_start)"
        " SELECT {view:String}, toDateTime(arrayJoin({missing:Array(UInt32)}), 'UTC')",
        parameters=parameters,
    )
    return len(missing)


def _close_sql(select: Select) -> str:
    """One pass over the samples; ranks are found inside each (POP, window)'s own array, so nothing is joined.

    Every piece comes from the tables of `metrics` or is an integer of the checked policy.
    """
    value = (
        f"intDiv(retransmitted_segments * {PPM}, data_segments)"
        if select.metric == RETRANSMIT_RATIO
        else METRICS[select.metric].column
    )
    known = f"{SENT} > 0" if select.metric == RETRANSMIT_RATIO else METRICS[select.metric].known
    traffic = select.traffic if select.traffic in _TRAFFIC else ""
    where = "".join(f"\n        AND {_sample_condition(c)}" for c in select.where)
    columns = [f"{metric.window} AS w_{metric.column}" for metric in METRICS.values()]
    aliases = [f"w_{metric.column} AS {metric.column}" for metric in METRICS.values()]
    names = ["prefix", "prefix_length", "samples", *(m.column for m in METRICS.values())]
    names += ["retransmitted_segments", "data_segments", "value"]
    unpacked = ", ".join(f"row.{i} AS {name}" for i, name in enumerate(names, 1))
    return f"""
INSERT INTO prefix_windows (view, pop, window_start, threshold, member, {", ".join(names)})
SELECT {{view:String}}, pop, window_start, threshold, value <= threshold AS member, {unpacked}
FROM (
    SELECT pop, window_start,
        arraySort(groupArray(value)) AS ranked,
        ranked[intDiv(length(ranked) * {select.rank.share_ppm} + {PPM - 1}, {PPM})] AS threshold,
        groupArray(({", ".join(names)})) AS rows
    FROM (
        SELECT pop, window_start, prefix, prefix_length, samples, {", ".join(aliases)},
            retransmitted_segments, data_segments, toUInt64({value}) AS value
        FROM (
            SELECT pop, bucket AS window_start, prefix, prefix_length, count() AS samples,
                {", ".join(columns)},
                sum({RETRANSMITTED}) AS retransmitted_segments, sum({SENT}) AS data_segments
            FROM (
                SELECT *,
                    toDateTime(intDiv(toUnixTimestamp64Nano(observed_at), {select.step_us * 1000})
                        * {select.step_us // US}, 'UTC') AS bucket,
                    IPv6CIDRToRange(remote_address, 96).1 = toIPv6('::ffff:0.0.0.0') AS is_ipv4,
                    toUInt8(is_ipv4 ? {96 + select.prefix_length_ipv4} : {select.prefix_length_ipv6})
                        AS prefix_length,
                    IPv6CIDRToRange(remote_address, prefix_length).1 AS prefix
                FROM socket_samples
                WHERE observed_at >= fromUnixTimestamp64Nano({{from_ns:Int64}}, 'UTC')
                    AND observed_at < fromUnixTimestamp64Nano({{to_ns:Int64}}, 'UTC')
                    AND traffic_class = '{traffic}' AND {known}{where}
            )
            WHERE remote_prefix_length >= prefix_length AND toUnixTimestamp(bucket) IN {{missing:Array(UInt32)}}
            GROUP BY pop, window_start, prefix, prefix_length
            HAVING samples >= {_min_samples(select)}
        )
    )
    GROUP BY pop, window_start
)
ARRAY JOIN rows AS row
"""


def _sample_condition(condition: Condition) -> str:
    comparison, value = _COMPARISON[condition.comparison], int(condition.value)
    if condition.metric in SAMPLE_ONLY:
        return f"{SAMPLE_ONLY[condition.metric]} {comparison} {value}"
    if condition.metric == RETRANSMIT_RATIO:
        return f"({SENT} > 0 AND toUInt64({RETRANSMITTED}) * {PPM} {comparison} {value} * toUInt64({SENT}))"
    metric = METRICS[condition.metric]
    return f"({metric.known} AND {metric.sample} {comparison} {value})"


def _min_samples(select: Select) -> int:
    return select.min_samples.value if select.min_samples else 1


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
