"""Each metric of the language as SQL: of one sample, of one window, of the whole lookback.

All values are integers in the metric's base unit (dsl/SPEC.md), so the same telemetry gives the same bytes on
every machine. Zero means that the kernel measured nothing: it reports a delivery rate of zero before the first
one, and a min_rtt of ~0U (net/ipv4/tcp.c, tcp_get_info). Rates above `MAX_BYTES_PER_SECOND` are damage, or the
~0 of a sender that does not pace.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tidegate_dsl.model import Policy, Select

from tidegate.starvation import BBR_STARVED, HEALTH_KNOWN

MAX_BYTES_PER_SECOND: Final = 125_000_000_000_000  # 1 Pbit/s
PPM: Final = 1_000_000

Table = Literal["socket_samples", "transfers", "host_health"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of prefix_windows.

    Attributes:
        name: its name.
        window: the aggregate of rows that fills it.
        lookback: a prefix's value over the lookback, of the array g_NAME of its windows' values.
    """

    name: str
    window: str
    lookback: str


@dataclass(frozen=True, slots=True)
class Metric:
    """SQL of one metric.

    Attributes:
        table: whose rows it is measured by.
        value: of one row, in base units; a ratio's upper number.
        lower: a ratio's lower number, of one row; None for every other metric.
        known: whether a row has a value.
        columns: what prefix_windows keeps of it, zero for no value; a ratio has two, the upper sum and the lower.
            It has no value of its own to aggregate. Without a column the metric stands in `where` only.
    """

    table: Table
    value: str
    lower: str | None
    known: str
    columns: tuple[Column, ...]


def _median(value: str, known: str, column: str, table: Table = "socket_samples") -> Metric:
    """Lower median of samples, then lower median of windows: an observed value, never an average of two."""
    window = f"quantileExactLowIf(0.5)({value}, {known})"
    ranked = f"arraySort(arrayFilter(x -> x > 0, g_{column})) AS ranked_{column}"
    lookback = f"({ranked})[intDiv(length(ranked_{column}) + 1, 2)]"
    return Metric(table, value, None, known, (Column(column, window, lookback),))


def _minimum(value: str, known: str, column: str) -> Metric:
    lookback = f"arrayMin(arrayFilter(x -> x > 0, g_{column}))"
    kept = Column(column, f"minIf({value}, {known})", lookback)
    return Metric("socket_samples", value, None, known, (kept,))


def _ratio(upper: str, lower: str, columns: tuple[str, str], table: Table = "socket_samples") -> Metric:
    known = f"{lower} > 0"
    sums = zip(columns, (upper, lower), strict=True)
    kept = tuple(Column(name, f"sumIf({part}, {known})", f"arraySum(g_{name})") for name, part in sums)
    return Metric(table, upper, lower, known, kept)


def _of_samples(value: str, known: str = "true") -> Metric:
    return Metric("socket_samples", value, None, known, ())


def _rate(bytes_per_second: str) -> tuple[str, str, str]:
    """A rate of the kernel, in bits per second, and when it is one."""
    known = f"{bytes_per_second} BETWEEN 1 AND {MAX_BYTES_PER_SECOND}"
    return f"{bytes_per_second} * 8", known, bytes_per_second


_GOODPUT: Final = f"toUInt64(intDiv(toUInt128(bytes) * {8 * PPM}, greatest(duration_us, 1)))"

METRICS: Final = {
    "delivery_rate": _median(*_rate("delivery_rate")),
    "pacing_rate": _median(*_rate("pacing_rate")),
    "goodput": _median(
        _GOODPUT,
        f"duration_us > 0 AND {_GOODPUT} BETWEEN 1 AND {8 * MAX_BYTES_PER_SECOND}",
        "goodput",
        "transfers",
    ),
    "rtt": _median("rtt_us", "rtt_us > 0", "rtt"),
    "min_rtt": _minimum("min_rtt_us", "min_rtt_us BETWEEN 1 AND 4294967294", "min_rtt"),
    "rttvar": _median("rttvar_us", "rttvar_us > 0", "rttvar"),
    "rto": _of_samples("rto_us", "rto_us > 0"),
    "cwnd": _median("snd_cwnd", "snd_cwnd > 0", "cwnd"),
    "ssthresh": _of_samples("snd_ssthresh", "snd_ssthresh > 0"),
    "inflight": _median("unacked", "unacked > 0", "inflight"),
    "lost": _of_samples("lost"),
    "reordering": _of_samples("reordering", "reordering > 0"),
    "mss": _of_samples("snd_mss", "snd_mss > 0"),
    "pmtu": _of_samples("pmtu", "pmtu > 0"),
    "snd_wnd": _of_samples("snd_wnd"),
    "bytes_acked": _of_samples("bytes_acked"),
    "bytes_sent": _of_samples("bytes_sent"),
    "bytes_received": _of_samples("bytes_received"),
    "bytes_retrans": _of_samples("bytes_retrans"),
    "notsent_bytes": _of_samples("notsent_bytes"),
    "busy_time": _of_samples("busy_time_us"),
    "retransmit_ratio": _ratio("total_retrans", "data_segs_out", ("retransmitted_segments", "data_segments")),
    "ce_ratio": _ratio("delivered_ce", "delivered", ("ce_segments", "delivered_segments")),
    "rwnd_limited": _ratio("rwnd_limited_us", "busy_time_us", ("rwnd_limited", "busy_time")),
    "sndbuf_limited": _ratio("sndbuf_limited_us", "busy_time_us", ("sndbuf_limited", "busy_time")),
    "host_cpu_pressure": _ratio(
        "cpu_stalled_us", "observed_us", ("cpu_stalled", "cpu_observed"), "host_health"
    ),
    "bbr_starved": _ratio(BBR_STARVED, HEALTH_KNOWN, ("bbr_starved", "bbr_samples")),
    "app_limited": _of_samples("delivery_rate_app_limited"),
    "in_slow_start": _of_samples("(snd_cwnd < snd_ssthresh)"),
    "in_recovery": _of_samples(
        "(ca_state IN (3, 4))"
    ),  # TCP_CA_Recovery, TCP_CA_Loss: include/uapi/linux/tcp.h
}

# Every window has these, so that a policy may start to exclude by them without closing its windows again.
ALWAYS: Final = ("delivery_rate", "rtt", "cwnd", "min_rtt", "retransmit_ratio")


def watched(policy: Policy, select: Select) -> frozenset[str]:
    """The metrics that guards judge of a select's prefixes: what the `extra` of `windows` and `select` must hold."""
    rules = {rule.name for rule in policy.applies if rule.select == select.name}
    return frozenset(abort.metric for g in policy.guards if g.watch in rules for abort in g.aborts)


def further(select: Select, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The metrics that a select's windows have beside those of `ALWAYS`, sorted."""
    used = {select.metric, *(condition.metric for condition in select.exclude), *extra}
    return tuple(sorted(used.difference(ALWAYS)))


def window_columns(select: Select, extra: Iterable[str] = ()) -> dict[str, Column]:
    """The columns that a select's windows have a value in, by name; first those that every window has."""
    return columns((*ALWAYS, *further(select, extra)))


def columns(metrics: Iterable[str], table: Table | None = None) -> dict[str, Column]:
    """The columns of metrics by name, each once; those that one table fills, where it is given."""
    found = (METRICS[name] for name in metrics)
    return {c.name: c for metric in found if table in (None, metric.table) for c in metric.columns}
