"""Selection as dsl/SPEC.md section 5 says it: brute force over rows of telemetry, slow and obvious.

Nothing of the compiler is imported, so that both can only agree by meaning the same.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tidegate_dsl.model import Condition, Select

SECOND_NS = 1_000_000_000
MOST_BPS = 1_000_000 * 1_000_000_000  # section 3: the range of a rate


@dataclass(frozen=True)
class Sample:
    """One socket in one poll; `fields` are the columns of the row, those that are not there are 0."""

    pop: str
    host: str
    at_ns: int
    traffic: str
    address: str
    bits: int  # of the 128 that the collector kept
    fields: Mapping[str, int]
    algorithm: str = ""


@dataclass(frozen=True)
class Transfer:
    """One transfer of the access logs."""

    pop: str
    at_ns: int
    address: str
    bits: int
    bytes: int
    duration_us: int


@dataclass(frozen=True)
class Health:
    """What a host saw of its CPUs in one poll."""

    pop: str
    host: str
    at_ns: int
    waited_us: int
    observed_us: int
    interval_us: int = 0
    stolen_us: int = 0
    cpu_us: int = 0
    queued_us: int = 0
    cpus: int = 0


@dataclass(frozen=True)
class Telemetry:
    samples: tuple[Sample, ...]
    transfers: tuple[Transfer, ...] = ()
    health: tuple[Health, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A prefix that was observed in the lookback.

    `value` is the measured metric over the lookback, `misses` every reason in the order of section 5.
    """

    membership: str
    value: int
    misses: tuple[str, ...]


Pair = tuple[int, int]  # what a ratio's upper and lower value are; of all else (value, 1)
OfSample = Callable[[Mapping[str, int]], Pair | None]


def _number(column: str, *, nothing: tuple[int, ...] = (0,)) -> OfSample:
    return lambda f: None if f.get(column, 0) in nothing else (f.get(column, 0), 1)


def _rate(column: str) -> OfSample:
    return lambda f: (f.get(column, 0) * 8, 1) if 0 < f.get(column, 0) * 8 <= MOST_BPS else None


def _ratio(upper: str, lower: str) -> OfSample:
    return lambda f: (f.get(upper, 0), f[lower]) if f.get(lower, 0) else None


def _flag(true: Callable[[Mapping[str, int]], bool]) -> OfSample:
    return lambda f: (int(true(f)), 1)


OF_SAMPLE: dict[str, OfSample] = {
    "delivery_rate": _rate("delivery_rate"),
    "pacing_rate": _rate("pacing_rate"),
    "rtt": _number("rtt_us"),
    "min_rtt": _number("min_rtt_us", nothing=(0, 2**32 - 1)),
    "rttvar": _number("rttvar_us"),
    "rto": _number("rto_us"),
    "cwnd": _number("snd_cwnd"),
    "ssthresh": _number("snd_ssthresh"),
    "inflight": _number("unacked"),
    "lost": _number("lost", nothing=()),
    "reordering": _number("reordering"),
    "mss": _number("snd_mss"),
    "pmtu": _number("pmtu"),
    "snd_wnd": _number("snd_wnd", nothing=()),
    "bytes_acked": _number("bytes_acked", nothing=()),
    "bytes_sent": _number("bytes_sent", nothing=()),
    "bytes_received": _number("bytes_received", nothing=()),
    "bytes_retrans": _number("bytes_retrans", nothing=()),
    "notsent_bytes": _number("notsent_bytes", nothing=()),
    "busy_time": _number("busy_time_us", nothing=()),
    "retransmit_ratio": _ratio("total_retrans", "data_segs_out"),
    "ce_ratio": _ratio("delivered_ce", "delivered"),
    "rwnd_limited": _ratio("rwnd_limited_us", "busy_time_us"),
    "sndbuf_limited": _ratio("sndbuf_limited_us", "busy_time_us"),
    "app_limited": _flag(lambda f: f.get("delivery_rate_app_limited", 0) == 1),
    "in_slow_start": _flag(lambda f: f.get("snd_cwnd", 0) < f.get("snd_ssthresh", 0)),
    "in_recovery": _flag(lambda f: f.get("ca_state", 0) in (3, 4)),  # TCP_CA_Recovery, TCP_CA_Loss
}
RATIOS = (
    "retransmit_ratio",
    "ce_ratio",
    "rwnd_limited",
    "sndbuf_limited",
    "host_cpu_pressure",
    "bbr_starved",
)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}


def lower_median(values: Iterable[int]) -> int:
    """The ceil(n/2)-th smallest."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) // 2) - 1]


def together(metric: str, values: list[Pair]) -> Pair | None:
    """The value of a window of those of its samples, and of a lookback of those of its windows."""
    if metric in RATIOS:
        upper, lower = sum(u for u, _ in values), sum(low for _, low in values)
        return (upper, lower) if lower else None
    if not values:
        return None
    return (min if metric == "min_rtt" else lower_median)(u for u, _ in values), 1


def holds(metric: str, comparison: str, bound: int, value: Pair) -> bool:
    """A comparison in whole numbers; a ratio's bound is in parts per million."""
    upper, lower = value
    scale = 1_000_000 if metric in RATIOS else 1
    return COMPARE[comparison](upper * scale, bound * lower)


def ranked(metric: str, value: Pair) -> int:
    """The value as it is ranked and printed."""
    upper, lower = value
    return upper * 1_000_000 // lower if metric in RATIOS else upper


def network_of(select: Select, address: str, bits: int) -> str | None:
    """The prefix of the measured length that a row counts for; None where the collector kept fewer bits than that."""
    whole = ipaddress.IPv6Address(address)
    if whole.ipv4_mapped is not None:
        length, kept, start = select.prefix_length_ipv4, bits - 96, whole.ipv4_mapped
        return str(ipaddress.ip_network((start, length), strict=False)) if kept >= length else None
    length = select.prefix_length_ipv6
    return str(ipaddress.ip_network((whole, length), strict=False)) if bits >= length else None


def holds_back_nothing_but_the_sender(sample: Sample) -> bool:
    """What a starved sample shows of itself."""
    f = sample.fields
    path = f.get("bbr_bw", 0) * f.get("bbr_min_rtt_us", 0) / Fraction(1_000_000)  # bytes
    mss = f.get("snd_mss", 0)
    return (
        sample.algorithm.startswith("bbr")
        and f.get("delivery_rate_app_limited", 0) == 0
        and f.get("bbr_cwnd_gain", 0) == 512
        and f.get("bbr_bw", 0) != 0
        and f.get("bbr_min_rtt_us", 0) not in (0, 2**32 - 1)
        and path >= 2 * mss
        and f.get("notsent_bytes", 0) != 0
        and f.get("ca_state", 0) not in (3, 4)
        and (f.get("snd_wnd", 0) == 0 or f["snd_wnd"] >= path)
        and 2 * f.get("unacked", 0) * mss < path
    )


def minutes_of(health: Health) -> range:
    """The minutes of Unix time that a row of health tells of."""
    length_s = min(health.interval_us // 1_000_000, 3_600)
    return range((health.at_ns // SECOND_NS - length_s) // 60, health.at_ns // SECOND_NS // 60 + 1)


def was_pressed(health: Health) -> bool:
    """Whether a row of health says that CPU was short."""
    if health.observed_us:
        waited = health.waited_us >= Fraction(1, 5) * health.observed_us
    else:
        time = health.interval_us * health.cpus
        waited = time > 0 and health.queued_us >= Fraction(1, 5) * time
    return waited or (health.cpu_us > 0 and health.stolen_us >= Fraction(1, 20) * health.cpu_us)


def starved(sample: Sample, telemetry: Telemetry) -> Pair | None:
    """Whether BBR was short of CPU there; None where the host told nothing of that minute."""
    told = [
        health
        for health in telemetry.health
        if (health.pop, health.host) == (sample.pop, sample.host)
        and sample.at_ns // SECOND_NS // 60 in minutes_of(health)
    ]
    if not told:
        return None
    return int(holds_back_nothing_but_the_sender(sample) and any(map(was_pressed, told))), 1


def passes(select: Select, sample: Sample) -> bool:
    """Whether a sample counts: of the class, with the measured metric, and past every condition of `where`."""

    def fulfils(condition: Condition) -> bool:
        value = OF_SAMPLE[condition.metric](sample.fields)
        return value is not None and holds(condition.metric, condition.comparison, condition.value, value)

    return (
        sample.traffic == select.traffic
        and OF_SAMPLE[select.metric](sample.fields) is not None
        and all(fulfils(condition) for condition in select.where)
    )


def reference(
    select: Select, telemetry: Telemetry, mark_s: int, selected: frozenset[tuple[str, str]] = frozenset()
) -> dict[tuple[str, str], Judged]:
    """Every prefix that is observed in the lookback, by POP and prefix.

    Args:
        select: the select.
        telemetry: all rows that had come when their windows were closed.
        mark_s: the watermark.
        selected: POP and prefix of those in the applied generation by a rule of this select.
    """
    step_s = select.step_us // 1_000_000
    count = select.over_us // select.step_us
    end = mark_s // step_s  # the first window that is not in the lookback
    indices = range(end - count, end)

    rows: dict[tuple[str, int, str], list[Sample]] = {}
    for sample in telemetry.samples:
        index = sample.at_ns // SECOND_NS // step_s
        if index in indices and passes(select, sample):
            prefix = network_of(select, sample.address, sample.bits)
            if prefix is not None:
                rows.setdefault((sample.pop, index, prefix), []).append(sample)
    need = select.min_samples.value if select.min_samples else 1
    observed = {key: found for key, found in rows.items() if len(found) >= need}

    def of_window(metric: str, pop: str, index: int, prefix: str) -> Pair | None:
        if metric == "goodput":
            rates = (
                transfer.bytes * 8 * 1_000_000 // transfer.duration_us
                for transfer in telemetry.transfers
                if transfer.pop == pop
                and transfer.at_ns // SECOND_NS // step_s == index
                and network_of(select, transfer.address, transfer.bits) == prefix
                and transfer.duration_us
            )
            values = [(rate, 1) for rate in rates if rate]
        elif metric == "host_cpu_pressure":
            values = [
                (health.waited_us, health.observed_us)
                for health in telemetry.health
                if health.pop == pop and health.observed_us and health.at_ns // SECOND_NS // step_s == index
            ]
        elif metric == "bbr_starved":
            judged = (starved(sample, telemetry) for sample in observed[pop, index, prefix])
            values = [value for value in judged if value is not None]
        else:
            found = (OF_SAMPLE[metric](sample.fields) for sample in observed[pop, index, prefix])
            values = [value for value in found if value is not None]
        return together(metric, values)

    def of_lookback(metric: str, pop: str, prefix: str) -> Pair | None:
        found = (of_window(metric, pop, i, prefix) for i in indices if (pop, i, prefix) in observed)
        return together(metric, [value for value in found if value is not None])

    values: dict[tuple[str, int], dict[str, Pair]] = {}
    for pop, index, prefix in observed:
        value = of_window(select.metric, pop, index, prefix)
        assert value is not None
        values.setdefault((pop, index), {})[prefix] = value

    def member(pop: str, index: int, prefix: str) -> bool:
        window = values[pop, index]
        own, rank = window[prefix], select.rank
        if rank.share_ppm is not None:
            ordered = sorted(ranked(select.metric, value) for value in window.values())
            k = -(-rank.share_ppm * len(ordered) // 1_000_000)
            if rank.side == "bottom" and ranked(select.metric, own) > ordered[k - 1]:
                return False
            if rank.side == "top" and ranked(select.metric, own) < ordered[-k]:
                return False
        absolute = rank.absolute
        return absolute is None or holds(select.metric, absolute.comparison, absolute.value, own)

    judged: dict[tuple[str, str], Judged] = {}
    for pop, prefix in {(pop, prefix) for pop, _, prefix in observed}:
        membership = "".join(
            "." if (pop, index, prefix) not in observed else "01"[member(pop, index, prefix)]
            for index in indices
        )
        value = of_lookback(select.metric, pop, prefix)
        assert value is not None
        staying = (pop, prefix) in selected
        misses = persistence(select, membership, staying=staying)
        for condition in select.exclude:
            found = of_lookback(condition.metric, pop, prefix)
            bound = condition.leave if staying and condition.leave is not None else condition.value
            strikes = found is None or holds(condition.metric, condition.comparison, bound, found)
            if strikes and condition.metric not in misses:
                misses.append(condition.metric)
        judged[pop, prefix] = Judged(membership, ranked(select.metric, value), tuple(misses))
    return judged


def persistence(select: Select, membership: str, *, staying: bool) -> list[str]:
    """Which of `windows`, `duty_cycle` and `flap_rate` a membership string misses."""

    def bound(name: str, default: int) -> int:
        clause = getattr(select, name)
        if clause is None:
            return default
        return clause.leave if staying and clause.leave is not None else clause.value

    observed = sum(mark != "." for mark in membership)
    members = membership.count("1")
    pairs = [a + b for a, b in pairwise(membership) if "." not in (a, b)]
    flips = sum(a != b for a, b in pairs)
    misses = []
    if observed < max(1, bound("min_windows", 1)):
        misses.append("windows")
    if not members or members * 1_000_000 < bound("min_duty_cycle", 0) * len(membership):
        misses.append("duty_cycle")
    if pairs and flips * 1_000_000 > bound("max_flap_rate", 1_000_000) * len(pairs):
        misses.append("flap_rate")
    return misses
