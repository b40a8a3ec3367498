"""Every word of the language, as tables: what the parser, the checker and its suggestions read."""

from dataclasses import dataclass
from typing import Final, Literal

EDITIONS: Final = ("2026.1",)
MAX_WINDOWS: Final = 128  # membership is kept as one bit a window, 128 bits wide

Dimension = Literal["duration", "size", "rate", "ratio", "segments", "flag"]
Place = Literal["where", "measure", "exclude"]


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
        required: its block needs it.
        repeats: it may stand any number of times; otherwise once, or once for each subject (`require windows`).
    """

    keyword: str
    forms: tuple[str, ...]
    required: bool = False
    repeats: bool = False


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
SMOOTH_RANGE: Final = Range(1, 1_000_000)
TRANSFER_SIZE_RANGE: Final = Range(1, 1_000 * 1_000_000_000)
SAMPLES_RANGE: Final = Range(1, 1_000_000)
WINDOWS_RANGE: Final = Range(1, MAX_WINDOWS)

METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "delivery_rate",
            "rate",
            ("where", "measure", "exclude"),
            "rate at which the client's side acknowledged data, as the kernel last estimated it",
        ),
        Metric(
            "min_rtt",
            "duration",
            ("where", "measure", "exclude"),
            "lowest round-trip time the connection saw lately",
        ),
        Metric("rtt", "duration", ("where", "measure", "exclude"), "smoothed round-trip time"),
        Metric(
            "retransmit_ratio",
            "ratio",
            ("exclude",),
            "retransmitted segments over data segments sent, in the lookback",
        ),
        Metric("cwnd", "segments", ("where", "measure"), "congestion window"),
        Metric("bytes_acked", "size", ("where",), "bytes acknowledged over the connection's life"),
        Metric(
            "app_limited",
            "flag",
            ("where",),
            "the last rate estimate was bound by the application, not the path",
        ),
    )
}

TRAFFIC_CLASSES: Final = ("client", "pop_to_pop", "intra_pop", "origin")
COMPARISONS: Final = ("<", "<=", ">", ">=")
REQUIREMENTS: Final = {"duty_cycle": ">=", "flap_rate": "<=", "windows": ">=", "samples": ">="}
REASONS: Final = (
    "windows",
    "duty_cycle",
    "flap_rate",
)  # in the order in which they are looked at and reported
VERDICTS: Final = ("includes", "excludes")
RESERVED_NAMES: Final = ("all", "except", "membership")  # words that stand where a POP or group may

TOP_LEVEL: Final = {
    rule.keyword: rule
    for rule in (
        ClauseRule("edition", ("edition 2026.1",), required=True),
        ClauseRule("inventory", ('inventory "PATH"',), required=True),
    )
}

_SELECT = (
    ClauseRule("measure", ("measure METRIC by prefix /LENGTH /LENGTH",), required=True),
    ClauseRule("from", ("from traffic CLASS [where CONDITION and CONDITION]",), required=True),
    ClauseRule("over", ("over DURATION step DURATION",), required=True),
    ClauseRule("rank", ("rank bottom N% of pop",), required=True),
    ClauseRule(
        "require",
        (
            "require duty_cycle >= N%",
            "require flap_rate <= N%",
            "require windows >= N",
            "require samples >= N per window",
        ),
    ),
    ClauseRule("exclude", ("exclude METRIC < VALUE",), repeats=True),
    ClauseRule("hold", ("hold DURATION",)),
)
_APPLY = (
    ClauseRule("to", ("to SELECT",), required=True),
    ClauseRule("in", ("in POP, GROUP [except POP, GROUP]",), required=True),
    ClauseRule("set", ("set congestion_control ALGORITHM",), required=True),
    ClauseRule("when", ("when transfer_size >= SIZE",)),
    ClauseRule("fallback", ("fallback ungated",)),
    ClauseRule("limit", ("limit N prefixes per pop", "limit N new prefixes per run")),
    ClauseRule("hold_out", ("hold_out N% of prefixes",)),
    ClauseRule("override", ("override POP { when transfer_size >= SIZE }",)),
)
_OVERRIDE = (ClauseRule("when", ("when transfer_size >= SIZE",), required=True),)
_LEARN = (
    ClauseRule("observe", ("observe cwnd by destination",), required=True),
    ClauseRule("toward", ("toward peer_pops",), required=True),
    ClauseRule("in", ("in POP, GROUP [except POP, GROUP]",), required=True),
    ClauseRule("smooth", ("smooth N every DURATION",), required=True),
    ClauseRule("set", ("set initcwnd between N and N segments",), required=True),
    ClauseRule("expire", ("expire DURATION",), required=True),
)
_TEST = (
    ClauseRule("given", ('given PREFIX in POP membership "1010..."',), required=True),
    ClauseRule("expect", ("expect SELECT includes|excludes PREFIX [because REASON]",), required=True),
)

BLOCKS: Final[dict[str, dict[str, ClauseRule]]] = {
    block: {rule.keyword: rule for rule in rules}
    for block, rules in (("select", _SELECT), ("apply", _APPLY), ("learn", _LEARN), ("test", _TEST))
}
OVERRIDE: Final[dict[str, ClauseRule]] = {rule.keyword: rule for rule in _OVERRIDE}
