"""Every word of the language, as tables: what the parser, the checker and its suggestions read."""

from dataclasses import dataclass
from typing import Final, Literal

EDITIONS: Final = ("2026.1",)
MAX_WINDOWS: Final = 128  # membership is kept as one bit a window, 128 bits wide

Dimension = Literal["duration", "size", "rate", "ratio", "segments", "flag"]
Place = Literal["where", "measure", "exclude", "abort"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit and what one of it is in its dimension's base unit (see `model`)."""

    name: str
    dimension: Dimension
    factor: int


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity of a socket; `places` are the clauses it may stand in."""

    name: str
    dimension: Dimension
    places: tuple[Place, ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class ClauseRule:
    """A clause of a block.

    Attributes:
        keyword: its first word.
        forms: how it is written, one entry a form.
        meaning: what it says, in one sentence: the specification, an editor's hover and error help show it.
        required: its block needs it.
        subject: where it may stand once for each subject, the one that its block needs (`initcwnd` of `set`).
        repeats: it may stand any number of times; otherwise once, or once for each subject (`require windows`).
    """

    keyword: str
    forms: tuple[str, ...]
    meaning: str
    required: bool = False
    repeats: bool = False
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a value, in base units."""

    low: int
    high: int


UNITS: Final = {
    unit.name: unit
    for unit in (
        Unit("us", "duration", 1),
        Unit("ms", "duration", 1_000),
        Unit("s", "duration", 1_000_000),
        Unit("m", "duration", 60_000_000),
        Unit("h", "duration", 3_600_000_000),
        Unit("d", "duration", 86_400_000_000),
        Unit("B", "size", 1),
        Unit("KB", "size", 1_000),
        Unit("MB", "size", 1_000_000),
        Unit("GB", "size", 1_000_000_000),
        Unit("KiB", "size", 1 << 10),
        Unit("MiB", "size", 1 << 20),
        Unit("GiB", "size", 1 << 30),
        Unit("bps", "rate", 1),
        Unit("kbps", "rate", 1_000),
        Unit("Mbps", "rate", 1_000_000),
        Unit("Gbps", "rate", 1_000_000_000),
        Unit("%", "ratio", 10_000),
        Unit("segments", "segments", 1),
    )
}

# Units that stand without a blank behind their number: `6h`, and `10 ms`.
TOUCHING: Final = frozenset(
    name for name, unit in UNITS.items() if unit.dimension == "duration" and len(name) == 1
)

# What people write for a unit; only suggested, never accepted.
UNIT_SPELLINGS: Final = {
    "usec": "us",
    "msec": "ms",
    "millisecond": "ms",
    "milliseconds": "ms",
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "min": "m",
    "mins": "m",
    "minute": "m",
    "minutes": "m",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "byte": "B",
    "bytes": "B",
    "K": "KB",
    "M": "MB",
    "G": "GB",
    "Kbit": "kbps",
    "Mbit": "Mbps",
    "Gbit": "Gbps",
    "percent": "%",
    "segment": "segments",
    "packets": "segments",
}

# A value beyond these is a slip of the pen; within them every product that SQL forms fits 64 bits.
DIMENSION_RANGES: Final[dict[Dimension, Range]] = {
    "duration": Range(0, 366 * 86_400_000_000),
    "size": Range(0, 1_000_000 * 1_000_000_000),
    "rate": Range(0, 1_000_000 * 1_000_000_000),
    "ratio": Range(0, 1_000_000),
    "segments": Range(0, 1_000_000),
    "flag": Range(0, 1),
}

STEP_RANGE: Final = Range(1_000_000, 86_400_000_000)
HOLD_RANGE: Final = Range(1_000_000, 30 * 86_400_000_000)
EVERY_RANGE: Final = Range(100_000, 3_600_000_000)
EXPIRE_RANGE: Final = Range(1_000_000, 7 * 86_400_000_000)
RANK_RANGE: Final = Range(1, 1_000_000)
HOLD_OUT_RANGE: Final = Range(0, 999_999)  # holding out everything would treat nothing
DESTINATIONS_RANGE: Final = Range(1, 999_999)
SMOOTH_RANGE: Final = Range(1, 1_000_000)
TRANSFER_SIZE_RANGE: Final = Range(1, 1_000 * 1_000_000_000)
SAMPLES_RANGE: Final = Range(1, 1_000_000)
WINDOWS_RANGE: Final = Range(1, MAX_WINDOWS)
RELEASE_RANGE: Final = Range(60_000_000, 30 * 86_400_000_000)
SWITCHBACK_RANGE: Final = Range(600_000_000, 7 * 86_400_000_000)  # ten minutes: a rollout takes some
ABORT_RANGE: Final = Range(10_000, 100_000_000)  # 1% to 10,000% of the hold-out
CHURN_RANGE: Final = Range(1, 1_000_000)
HOSTS_RANGE: Final = Range(1, 999_999)
PREFIXES_PER_ARM_RANGE: Final = Range(1, 1_000_000)
PERCENTILE_RANGE: Final = Range(1, 99)
YEARS: Final = Range(2000, 2105)  # what ClickHouse's DateTime holds, and room for a lookback

# What a value over the lookback can be formed of; SPEC.md says how.
_EVERYWHERE: Final[tuple[Place, ...]] = ("where", "measure", "exclude", "abort")
_OF_SAMPLES: Final[tuple[Place, ...]] = ("where",)
_OF_LOOKBACKS: Final[tuple[Place, ...]] = ("exclude", "abort")

METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "delivery_rate",
            "rate",
            _EVERYWHERE,
            "rate at which data was delivered, as the kernel last estimated it",
        ),
        Metric("pacing_rate", "rate", _EVERYWHERE, "rate at which the sender paces"),
        Metric("goodput", "rate", _OF_LOOKBACKS, "bytes of a transfer over its duration, from access logs"),
        Metric("rtt", "duration", _EVERYWHERE, "smoothed round-trip time"),
        Metric("min_rtt", "duration", _EVERYWHERE, "lowest round-trip time that the connection saw lately"),
        Metric("rttvar", "duration", _EVERYWHERE, "mean deviation of the round-trip time"),
        Metric("rto", "duration", _OF_SAMPLES, "retransmission timeout"),
        Metric("cwnd", "segments", _EVERYWHERE, "congestion window"),
        Metric("ssthresh", "segments", _OF_SAMPLES, "slow start threshold"),
        Metric("inflight", "segments", _EVERYWHERE, "segments sent and not acknowledged"),
        Metric("lost", "segments", _OF_SAMPLES, "segments that are held for lost and not yet repaired"),
        Metric("reordering", "segments", _OF_SAMPLES, "how far segments were seen to arrive out of order"),
        Metric("mss", "size", _OF_SAMPLES, "maximum segment size that is sent"),
        Metric("pmtu", "size", _OF_SAMPLES, "largest packet that the path is known to take"),
        Metric("snd_wnd", "size", _OF_SAMPLES, "window that the receiver advertised"),
        Metric("bytes_acked", "size", _OF_SAMPLES, "bytes acknowledged over the connection's life"),
        Metric("bytes_sent", "size", _OF_SAMPLES, "bytes sent over the connection's life, repeats included"),
        Metric("bytes_received", "size", _OF_SAMPLES, "bytes received over the connection's life"),
        Metric("bytes_retrans", "size", _OF_SAMPLES, "bytes sent again over the connection's life"),
        Metric("notsent_bytes", "size", _OF_SAMPLES, "bytes that wait in the socket and were never sent"),
        Metric(
            "busy_time",
            "duration",
            _OF_SAMPLES,
            "time over the connection's life with data under way or waiting",
        ),
        Metric("retransmit_ratio", "ratio", _EVERYWHERE, "retransmitted segments over data segments sent"),
        Metric(
            "ce_ratio",
            "ratio",
            _EVERYWHERE,
            "delivered segments with a congestion mark (ECN) over all delivered",
        ),
        Metric(
            "rwnd_limited",
            "ratio",
            _EVERYWHERE,
            "share of the busy time that the receiver's window held data back",
        ),
        Metric(
            "sndbuf_limited",
            "ratio",
            _EVERYWHERE,
            "share of the busy time that the send buffer held data back",
        ),
        Metric(
            "host_cpu_pressure",
            "ratio",
            _OF_LOOKBACKS,
            "share of time in which tasks of the POP's hosts waited for a CPU",
        ),
        Metric(
            "bbr_starved",
            "ratio",
            _OF_LOOKBACKS,
            "share of samples that show BBR short of CPU: bytes wait, little is in flight, and the host is pressed",
        ),
        Metric(
            "app_limited",
            "flag",
            _OF_SAMPLES,
            "the last rate estimate was bound by the application, not the path",
        ),
        Metric(
            "in_slow_start", "flag", _OF_SAMPLES, "the congestion window is below the slow start threshold"
        ),
        Metric("in_recovery", "flag", _OF_SAMPLES, "the connection repairs a loss: state Recovery or Loss"),
    )
}

TRAFFIC_CLASSES: Final = ("client", "pop_to_pop", "intra_pop", "origin")
COMPARISONS: Final = ("<", "<=", ">", ">=")
SIDES: Final = ("bottom", "top")
REQUIREMENTS: Final = {"duty_cycle": ">=", "flap_rate": "<=", "windows": ">=", "samples": ">="}
LEAVE: Final = {
    "duty_cycle": "<",
    "flap_rate": ">",
    "windows": "<",
}  # the comparison of a requirement's `leave`
REASONS: Final = (
    "windows",
    "duty_cycle",
    "flap_rate",
)  # in the order in which they are looked at and reported
VERDICTS: Final = ("includes", "excludes")
FAMILIES: Final = {"ipv4": "0.0.0.0/0", "ipv6": "::/0"}
DIRECTIONS: Final = ("peer_pops", "origins")
WINDOWS: Final = ("initcwnd", "initrwnd")
FAILURES: Final = ("freeze", "release")
RESERVED_NAMES: Final = ("all", "except", "membership")  # words that stand where a POP or group may

TOP_LEVEL: Final = {
    rule.keyword: rule
    for rule in (
        ClauseRule(
            "edition",
            ("edition 2026.1",),
            "the language's edition; the first clause of the file",
            required=True,
        ),
        ClauseRule(
            "inventory",
            ('inventory "PATH"',),
            "the directory that holds `hosts.yml`, or that file, relative to the policy",
            required=True,
        ),
    )
}

_IN: Final = ClauseRule(
    "in",
    ("in POP, GROUP [except POP, GROUP]",),
    "where: `all`, groups and POPs; an exception must take something away and leave something",
    required=True,
)
_SELECT = (
    ClauseRule(
        "measure",
        ("measure METRIC by prefix /LENGTH /LENGTH",),
        "the ranked metric, and how long the prefixes of IPv4 and IPv6 are",
        required=True,
    ),
    ClauseRule(
        "from",
        ("from traffic CLASS [where CONDITION and CONDITION]",),
        "which samples count",
        required=True,
    ),
    ClauseRule("over", ("over DURATION step DURATION",), "the lookback, and its windows", required=True),
    ClauseRule(
        "rank",
        ("rank bottom|top N% of pop [and METRIC < VALUE]", "rank METRIC < VALUE"),
        "which observed prefixes are members of a window: a share of them, those beyond an absolute value, or both",
        required=True,
    ),
    ClauseRule(
        "require",
        (
            "require duty_cycle >= N% [leave < N%]",
            "require flap_rate <= N% [leave > N%]",
            "require windows >= N [leave < N]",
            "require samples >= N per window",
        ),
        "what a prefix needs to be selected, and with `leave` what makes a selected one go",
    ),
    ClauseRule(
        "exclude",
        ("exclude METRIC < VALUE [leave < VALUE]",),
        "leaves a prefix out whose value over the lookback fulfils the comparison",
        repeats=True,
    ),
    ClauseRule("hold", ("hold DURATION",), "how long a selected prefix stays after it last qualified"),
)
_LIMIT_PER_POP: Final = "limit N prefixes per pop"
_WHEN: Final = "when transfer_size >= SIZE"
_APPLY = (
    ClauseRule("to", ("to SELECT",), "whose prefixes", required=True),
    _IN,
    ClauseRule(
        "set", ("set congestion_control ALGORITHM",), "one of the limits file's `algorithms`", required=True
    ),
    ClauseRule(
        "when",
        (_WHEN,),
        "bytes that a transfer must pass first; without it the algorithm applies from the start",
    ),
    ClauseRule(
        "fallback",
        ("fallback ungated",),
        "on a host that can not gate by size, apply to every transfer; without it such a claim is not applied",
    ),
    ClauseRule(
        "limit",
        (_LIMIT_PER_POP, "limit N new prefixes per run"),
        "most prefixes at a time in one POP, or most that are admitted at one watermark over all POPs",
    ),
    ClauseRule(
        "hold_out", ("hold_out N% of prefixes",), "share that is selected and kept untreated, as control"
    ),
    ClauseRule(
        "active",
        ("active TIME until TIME",),
        "the rule applies at watermarks from the first time until before the second, UTC",
    ),
    ClauseRule("override", (f"override POP {{ {_WHEN} }}",), "another threshold or limit in one POP of `in`"),
)
_OVERRIDE = (
    ClauseRule("when", (_WHEN,), "the threshold in this POP"),
    ClauseRule("limit", (_LIMIT_PER_POP,), "most prefixes at a time in this POP"),
)
_LEARN = (
    ClauseRule(
        "observe",
        ("observe cwnd by destination",),
        "congestion windows of open connections, by destination",
        required=True,
    ),
    ClauseRule(
        "toward",
        ("toward peer_pops, origins",),
        "which destinations: own prefixes of the inventory's other POPs, its origins, or both",
        required=True,
    ),
    _IN,
    ClauseRule(
        "smooth",
        ("smooth N every DURATION",),
        "weight of the newest observation, above 0 and up to 1, and the interval between two",
        required=True,
    ),
    ClauseRule(
        "set",
        ("set initcwnd between N and N segments", "set initrwnd N segments"),
        "inclusive bounds of a learned window, or the receive window that the destinations are offered at first",
        required=True,
        subject="initcwnd",
    ),
    ClauseRule(
        "expire", ("expire DURATION",), "life of what was learned without a new observation", required=True
    ),
    ClauseRule(
        "hold_out",
        ("hold_out N% of destinations",),
        "share of the destinations that are observed and get no learned window, as control",
    ),
)
_INITCWND = (
    ClauseRule(
        "for",
        ("for ipv4|ipv6|PREFIX, PREFIX",),
        "whose: an address family, or prefixes; the longest that covers a destination counts",
        required=True,
    ),
    _IN,
    ClauseRule("set", ("set initcwnd N segments",), "the window of a new connection", required=True),
)
_GUARD = (
    ClauseRule("watch", ("watch APPLY",), "the rule that is stopped", required=True),
    ClauseRule(
        "abort",
        ("abort when METRIC pN < N% of hold_out",),
        "stops the rule in a POP where a percentile of the treated prefixes is beyond a share of the held-out ones'",
        repeats=True,
    ),
    ClauseRule(
        "require",
        ("require prefixes >= N per arm",),
        "prefixes that each arm needs before `abort` is judged; 1 without the clause",
    ),
    ClauseRule(
        "limit",
        ("limit churn <= N% per run",),
        "a run in which a larger share of a POP's prefixes would leave changes nothing there",
    ),
    ClauseRule(
        "on_failure",
        ("on_failure freeze", "on_failure release for DURATION"),
        "after an abort: keep what is selected as it is, or release all and admit none for so long",
    ),
)
_EXPERIMENT = (
    ClauseRule("on", ("on APPLY",), "the rule that is tried", required=True),
    ClauseRule(
        "hold_out", ("hold_out N% of hosts",), "share of each POP's hosts that get nothing of the rule"
    ),
    ClauseRule(
        "switchback",
        ("switchback DURATION",),
        "the rule is on and off by turns of this length in each POP, in random order",
    ),
)
_TEST = (
    ClauseRule(
        "given",
        ('given PREFIX in POP membership "1010..." [selected]', 'given telemetry "PATH" [until TIME]'),
        "a prefix's membership by window, or recorded telemetry",
        required=True,
    ),
    ClauseRule(
        "expect",
        ("expect SELECT includes PREFIX [in POP]", "expect SELECT excludes PREFIX [in POP] because REASON"),
        "what the select must say of the prefix, and for an exclusion what it must miss",
        required=True,
        repeats=True,
    ),
)

BLOCKS: Final[dict[str, dict[str, ClauseRule]]] = {
    block: {rule.keyword: rule for rule in rules}
    for block, rules in (
        ("select", _SELECT),
        ("apply", _APPLY),
        ("learn", _LEARN),
        ("initcwnd", _INITCWND),
        ("guard", _GUARD),
        ("experiment", _EXPERIMENT),
        ("test", _TEST),
    )
}
OVERRIDE: Final[dict[str, ClauseRule]] = {rule.keyword: rule for rule in _OVERRIDE}
BLOCK_MEANINGS: Final = {
    "select": "which prefixes count as persistently slow, POP by POP",
    "apply": "what selected prefixes get, where, and within which limits",
    "learn": "how far initial windows that hosts learn may grow (Riptide)",
    "initcwnd": "an initial window as it stands, by prefix or address family",
    "guard": "what stops a rule in a POP",
    "experiment": "control by host or by time, to measure what a rule gains",
    "test": "what the policy must say of given telemetry",
}
