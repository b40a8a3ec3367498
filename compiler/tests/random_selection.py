"""Random selects, as text, and random telemetry for them: small sets of values, so that ties and bounds are met.

All of it follows from one `random.Random`, so that a seed repeats it.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from reference_selection import SECOND_NS, Health, Sample, Telemetry, Transfer
from tidegate_dsl.vocabulary import COMPARISONS, METRICS, TRAFFIC_CLASSES

START_S: Final = 1_763_596_800  # 2025-11-20, a multiple of every step below
SPAN_S: Final = 600
POPS: Final = ("ams1", "fra2", "sin1")  # sin1 gets one prefix only
HOSTS: Final = {pop: (f"{pop}-edge1", f"{pop}-edge2") for pop in POPS}
STEPS_S: Final = (30, 60, 60, 60, 70, 100)
MOST_WINDOWS: Final = 7

# Column by column, what a row may hold: nothing measured, ties, what a broken kernel might say.
COLUMNS: Final[dict[str, tuple[int, ...]]] = {
    "delivery_rate": (0, 1, 1, 2, 3, 3, 125_000_000_000_000, 125_000_000_000_001),
    "pacing_rate": (0, 1, 2, 3, 2**64 - 1),
    "rtt_us": (0, 5_000, 10_000, 10_000, 20_000, 2**32 - 1),
    "min_rtt_us": (0, 5_000, 10_000, 10_000, 20_000, 2**32 - 1),
    "rttvar_us": (0, 1_000, 2_000, 2_000),
    "rto_us": (0, 200_000, 400_000),
    "snd_cwnd": (0, 4, 10, 10, 20),
    "snd_ssthresh": (0, 4, 10, 2**31 - 1),
    "unacked": (0, 1, 5, 10),
    "lost": (0, 0, 1, 4),
    "reordering": (0, 3, 10),
    "snd_mss": (0, 536, 1_448),
    "pmtu": (0, 1_280, 1_500),
    "snd_wnd": (0, 65_535),
    "bytes_acked": (0, 100_000, 200_000),
    "bytes_sent": (0, 100_000, 200_000),
    "bytes_received": (0, 500),
    "bytes_retrans": (0, 1_448),
    "notsent_bytes": (0, 4_096),
    "total_retrans": (0, 0, 1, 2, 3),
    "data_segs_out": (0, 10, 30, 70, 100),
    "delivered_ce": (0, 0, 1, 5),
    "delivered": (0, 10, 30, 70),
    "busy_time_us": (0, 1_000, 3_000),
    "rwnd_limited_us": (0, 100, 700, 1_000),
    "sndbuf_limited_us": (0, 0, 300, 1_000),
    "delivery_rate_app_limited": (0, 1),
    "ca_state": (0, 1, 2, 3, 4),
    "bbr_bw": (0, 144_799, 144_800, 724_000, 1_448_000, 4_000_000),
    "bbr_min_rtt_us": (0, 20_000, 20_000, 20_000, 2**32 - 1),
    "bbr_cwnd_gain": (256, 512, 512, 512, 739),
}
ALGORITHMS: Final = ("cubic", "bbr", "bbr", "bbr1", "reno")
# Metric by metric, bounds in base units that the values above reach.
BOUNDS: Final[dict[str, tuple[int, ...]]] = {
    "delivery_rate": (0, 8, 16, 24, 10**15),
    "pacing_rate": (8, 16, 24),
    "goodput": (0, 8, 12, 13, 16),
    "rtt": (5_000, 10_000, 20_000),
    "min_rtt": (5_000, 10_000, 20_000),
    "rttvar": (1_000, 2_000),
    "rto": (200_000, 400_000),
    "cwnd": (4, 10, 20),
    "ssthresh": (4, 10),
    "inflight": (1, 5, 10),
    "lost": (0, 1, 4),
    "reordering": (3, 10),
    "mss": (536, 1_448),
    "pmtu": (1_280, 1_500),
    "snd_wnd": (0, 65_535),
    "bytes_acked": (100_000, 200_000),
    "bytes_sent": (100_000, 200_000),
    "bytes_received": (0, 500),
    "bytes_retrans": (0, 1_448),
    "notsent_bytes": (0, 4_096),
    "busy_time": (0, 1_000, 3_000),
    "retransmit_ratio": (0, 10_000, 14_285, 14_286, 20_000, 33_333, 100_000),
    "ce_ratio": (0, 14_285, 14_286, 33_333, 100_000),
    "rwnd_limited": (0, 33_333, 100_000, 233_333, 333_333, 1_000_000),
    "sndbuf_limited": (0, 100_000, 300_000, 1_000_000),
    "host_cpu_pressure": (0, 100_000, 142_857, 250_000),
    "bbr_starved": (0, 50_000, 100_000, 200_000),
}
SPELLED: Final = {
    "duration": "{} us",
    "size": "{} B",
    "rate": "{} bps",
    "segments": "{} segments",
}
SHARES: Final = (1, 100_000, 200_000, 250_000, 333_333, 333_334, 500_000, 666_667, 1_000_000)


def spell(metric: str, value: int) -> str:
    kind = METRICS[metric].dimension
    return percent(value) if kind == "ratio" else SPELLED[kind].format(value)


def percent(ppm: int) -> str:
    return f"{ppm // 10_000}.{ppm % 10_000:04d}%"


def metrics_in(place: str) -> list[str]:
    return [metric.name for metric in METRICS.values() if place in metric.places]


# --- policies ---------------------------------------------------------------------------------------------------


def random_select(random: Random) -> str:
    """The text of a select block; the checker takes it."""
    measured = random.choice(metrics_in("measure"))
    step = random.choice(STEPS_S)
    windows = random.randint(1, MOST_WINDOWS)
    lines = [
        f"measure {measured} by prefix /{random.choice((16, 22, 24, 24, 28))} /{random.choice((32, 48, 56, 56, 64))}",
        f"from traffic {random.choice(('client', 'client', *TRAFFIC_CLASSES))}{_where(random)}",
        f"over {step * windows}s step {step}s",
        f"rank {_rank(random, measured)}",
    ]
    if random.random() < 0.5:
        lines.append(f"require duty_cycle >= {_share_bound(random, upward=True)}")
    if random.random() < 0.4:
        lines.append(f"require flap_rate <= {_share_bound(random, upward=False)}")
    if random.random() < 0.4:
        enter = random.randint(1, windows)
        leave = f" leave < {random.randint(1, enter)}" if random.random() < 0.5 else ""
        lines.append(f"require windows >= {enter}{leave}")
    if random.random() < 0.4:
        lines.append(f"require samples >= {random.randint(1, 3)} per window")
    lines += [f"exclude {_exclude(random)}" for _ in range(random.choice((0, 0, 1, 1, 2, 3)))]
    random.shuffle(lines)
    return "select slow {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _where(random: Random) -> str:
    """Conditions on different metrics, each of which some sample can pass."""
    conditions = []
    for metric in random.sample(metrics_in("where"), random.choice((0, 0, 1, 1, 2))):
        if METRICS[metric].dimension == "flag":
            conditions.append(f"{random.choice(('', 'not '))}{metric}")
        else:
            conditions.append(_comparison(random, metric, possible=True))
    return f" where {' and '.join(conditions)}" if conditions else ""


def _comparison(random: Random, metric: str, *, possible: bool = False) -> str:
    comparison, value = random.choice(COMPARISONS), random.choice(BOUNDS[metric])
    if possible and value == 0 and comparison == "<":
        comparison = "<="
    if possible and value >= (10**15 if METRICS[metric].dimension == "rate" else 10**6) and comparison == ">":
        comparison = ">="
    return f"{metric} {comparison} {spell(metric, value)}"


def _rank(random: Random, measured: str) -> str:
    share = f"{random.choice(('bottom', 'top'))} {percent(random.choice(SHARES))} of pop"
    absolute = _comparison(random, measured)
    return random.choice((share, share, f"{share} and {absolute}", absolute))


def _share_bound(random: Random, *, upward: bool) -> str:
    shares = sorted({0, *SHARES, 142_857, 142_858, 428_571, 571_428})
    enter = random.choice(shares)
    if random.random() < 0.5:
        return percent(enter)
    leave = random.choice([share for share in shares if (share <= enter if upward else share >= enter)])
    return f"{percent(enter)} leave {'<' if upward else '>'} {percent(leave)}"


def _exclude(random: Random) -> str:
    metric = random.choice(metrics_in("exclude"))
    comparison, enter = random.choice(COMPARISONS), random.choice(BOUNDS[metric])
    written = f"{metric} {comparison} {spell(metric, enter)}"
    if random.random() < 0.5:
        return written
    less = "<" in comparison
    leave = random.choice([value for value in BOUNDS[metric] if (value <= enter if less else value >= enter)])
    return f"{written} leave {comparison} {spell(metric, leave)}"


# --- telemetry --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remote:
    """Where a client is: its address as the collector sent it, and how many of its 128 bits that kept."""

    address: str
    bits: int


IPV4: Final = tuple(
    Remote(f"::ffff:{address}", bits)
    for address, bits in (
        ("198.18.1.0", 120),
        ("198.18.1.16", 128),
        ("198.18.1.77", 128),
        ("198.18.2.0", 120),
        ("198.18.7.9", 128),
        ("198.19.0.0", 112),  # cut to /16
        ("203.0.113.5", 128),
    )
)
IPV6: Final = tuple(
    Remote(address, bits)
    for address, bits in (
        ("2001:db8:0:100::", 56),
        ("2001:db8:0:1aa::1", 128),
        ("2001:db8:0:200::", 56),
        ("2001:db8:5::", 48),  # cut to /48
        ("2001:db9::7", 128),
    )
)


def random_telemetry(random: Random) -> Telemetry:
    """What was measured in SPAN_S seconds: every POP with its own remotes and its own gaps."""
    samples, transfers, health = [], [], []
    density = random.choice((1, 2, 4))
    for pop in POPS:
        few = (random.choice(IPV4),) if pop == "sin1" else (*random.sample(IPV4, 5), *random.sample(IPV6, 4))
        for remote in few:
            # One prefix keeps near its own values, so that memberships last; gaps are whole minutes.
            algorithm = random.choice(ALGORITHMS)
            typical = {column: random.choice(values) for column, values in COLUMNS.items()}
            gaps = {minute for minute in range(SPAN_S // 60) if random.random() < 0.2}
            for _ in range(density * SPAN_S // 60):
                at_ns = random_moment(random)
                if (at_ns // SECOND_NS - START_S) // 60 in gaps:
                    continue
                samples.append(_sample(random, pop, remote, at_ns, typical, algorithm))
                if random.random() < 0.5:
                    taken = random.choice((0, 4_000_000, 4_500_000, 8_000_000))
                    transfers.append(
                        Transfer(
                            pop, at_ns, remote.address, remote.bits, random.choice((0, 1, 6, 7, 8)), taken
                        )
                    )
        if random.random() < 0.8:
            health += [
                Health(
                    pop,
                    host,
                    random_moment(random),
                    random.choice((0, 100, 700)),
                    random.choice((0, 500, 1_000, 4_900)),
                    random.choice((0, 999_999, 10_000_000, 60_000_000, 2**63)),
                    *random.choice(((0, 0), (4, 100), (5, 100), (1, 0))),
                    random.choice((0, 3_999_999, 4_000_000, 24_000_000)),
                    random.choice((0, 2)),
                )
                for host in HOSTS[pop]
                for _ in range(8)
            ]
    return Telemetry(tuple(samples), tuple(transfers), tuple(health))


def random_moment(random: Random) -> int:
    """In nanoseconds: often exactly on a window's bound, or just before one."""
    second = START_S + random.randrange(-10, SPAN_S + 10)
    on_bound = second // 10 * 10 * SECOND_NS
    return random.choice((on_bound, on_bound - 1, second * SECOND_NS + random.randrange(SECOND_NS)))


def _sample(
    random: Random, pop: str, remote: Remote, at_ns: int, typical: dict[str, int], algorithm: str
) -> Sample:
    fields = {
        column: typical[column] if random.random() < 0.7 else random.choice(values)
        for column, values in COLUMNS.items()
    }
    traffic = random.choice(("client", "client", "client", "client", *TRAFFIC_CLASSES, "unknown"))
    host = random.choice(HOSTS[pop])
    return Sample(pop, host, at_ns, traffic, remote.address, remote.bits, fields, algorithm)


def late(random: Random, telemetry: Telemetry) -> Telemetry:
    """Rows that come too late: other values for what was measured already, and prefixes that nobody had seen."""

    def later(sample: Sample) -> Sample:
        fields = {column: random.choice(values) for column, values in COLUMNS.items()}
        return replace(sample, fields=fields, address=random.choice((sample.address, "2001:db8:7777::")))

    return Telemetry(
        tuple(later(random.choice(telemetry.samples)) for _ in range(40)),
        tuple(replace(transfer, bytes=9_999) for transfer in telemetry.transfers[:20]),
        tuple(replace(health, waited_us=health.observed_us) for health in telemetry.health[:10]),
    )
