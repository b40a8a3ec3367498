"""A checked policy: names resolved, units reduced to integers, POP sets expanded. What the compiler reads.

Base units: time in microseconds, size in bytes, rate in bits per second, ratio in parts per million (ppm),
windows (initcwnd) in segments. `line` is the clause's line in the policy file, for `because` and `explain`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Comparison = Literal["<", "<=", ">", ">="]
TrafficClass = Literal["client", "pop_to_pop", "intra_pop", "origin"]


@dataclass(frozen=True, slots=True)
class Clause:
    """Where a clause stands, and its words as written."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """`metric comparison value`, value in the metric's base unit; a flag (`app_limited`) compares with 0 or 1.

    `leave` is, in an `exclude`, the value that counts for a prefix that is selected already; None: the same.
    """

    metric: str
    comparison: Comparison | Literal["=="]
    value: int
    clause: Clause
    leave: int | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """Which of a POP's observed prefixes are members of a window, by the measured metric.

    Attributes:
        side: which end of the ranking `share_ppm` is taken from.
        share_ppm: the share of the observed prefixes; None where only `absolute` counts.
        absolute: a comparison of the measured metric that must hold as well; None where only the share counts.
            One of the two is there.
        clause: where it stands.
    """

    side: Literal["bottom", "top"]
    share_ppm: int | None
    absolute: Condition | None
    clause: Clause


@dataclass(frozen=True, slots=True)
class Bound:
    """An inclusive bound of a `require` or `limit` clause: shares in ppm, everything else as counts.

    `leave` is the bound that counts for a prefix that is selected already, inclusive as well: `leave < 50%` is kept
    as the least that stays, 500,000, and `leave > 20%` as the most. None: the same as `value`.
    """

    value: int
    clause: Clause
    leave: int | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """Which client prefixes count as persistently slow, per POP."""

    name: str
    clause: Clause
    metric: str
    prefix_length_ipv4: int
    prefix_length_ipv6: int
    traffic: TrafficClass
    where: tuple[Condition, ...]
    over_us: int
    step_us: int
    rank: Rank
    min_duty_cycle: Bound | None
    max_flap_rate: Bound | None
    min_windows: Bound | None
    min_samples: Bound | None
    exclude: tuple[Condition, ...]
    hold_us: int
    hold: Clause | None

    @property
    def windows(self) -> int:
        """Windows in the lookback; the checker keeps it within 1 to 128."""
        return self.over_us // self.step_us


@dataclass(frozen=True, slots=True)
class Active:
    """When a rule applies: from `start` until before `end`, UTC, compared with the watermark."""

    start: datetime
    end: datetime
    clause: Clause


@dataclass(frozen=True, slots=True)
class Apply:
    """What selected prefixes get, in which POPs, within which limits."""

    name: str
    clause: Clause
    select: str
    pops: tuple[str, ...]
    congestion_control: str
    min_bytes: dict[str, int]  # by POP, overrides resolved; 0: from the start
    ungated_fallback: bool
    max_prefixes: dict[str, Bound]  # by POP, overrides resolved; a POP without an entry has no limit
    max_new_per_run: Bound | None
    hold_out_ppm: int
    hold_out: Clause | None
    active: Active | None


@dataclass(frozen=True, slots=True)
class Learn:
    """How far learned initial windows between POPs may grow (Riptide).

    Attributes:
        name: the block's name.
        clause: where it stands.
        pops: where, sorted.
        smooth_ppm: weight of the newest observation.
        every_us: interval between two observations.
        initcwnd_min: least learned window, segments.
        initcwnd_max: most, segments.
        expire_us: life of what was learned without a new observation.
        toward: which destinations.
        hold_out_ppm: share of the destinations that are observed and get no learned window; 0: none.
        initrwnd: receive window that the destinations are offered at first, segments; None: the kernel's own.
    """

    name: str
    clause: Clause
    pops: tuple[str, ...]
    smooth_ppm: int
    every_us: int
    initcwnd_min: int
    initcwnd_max: int
    expire_us: int
    toward: tuple[Literal["peer_pops", "origins"], ...]
    hold_out_ppm: int
    initrwnd: int | None


@dataclass(frozen=True, slots=True)
class Initcwnd:
    """An initial window that is set as it stands, for prefixes that the policy names.

    Attributes:
        name: the block's name.
        clause: where it stands.
        prefixes: in address order; `0.0.0.0/0` is all of IPv4 and `::/0` all of IPv6.
        pops: where, sorted.
        segments: the window.
    """

    name: str
    clause: Clause
    prefixes: tuple[str, ...]
    pops: tuple[str, ...]
    segments: int


@dataclass(frozen=True, slots=True)
class Abort:
    """A comparison of treated with held-out prefixes of one POP that must not come true.

    True when `percentile(treated) comparison ratio_ppm / 1,000,000 x percentile(held out)`, both of the metric's
    values over the lookback.
    """

    metric: str
    percentile: int  # 1 to 99
    comparison: Literal["<", ">"]
    ratio_ppm: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Guard:
    """What stops a rule in a POP.

    Attributes:
        name: the block's name.
        clause: where it stands.
        watch: the name of the apply rule.
        aborts: comparisons with the hold-out; one that is true stops the rule.
        min_per_arm: prefixes that each arm needs before an abort is judged.
        max_churn: share of the selected prefixes that may leave in one run, in ppm; beyond it the rule keeps in this
            POP what it has.
        release_us: after an abort the rule has no prefixes for so long; None: it keeps what it has (freeze).
        on_failure: where that stands; None without aborts.
    """

    name: str
    clause: Clause
    watch: str
    aborts: tuple[Abort, ...]
    min_per_arm: Bound | None
    max_churn: Bound | None
    release_us: int | None
    on_failure: Clause | None


@dataclass(frozen=True, slots=True)
class Experiment:
    """Control by host, by time, or both: hosts that get nothing of a rule, periods in which no host does.

    Attributes:
        name: the block's name, which salts the draws.
        clause: where it stands.
        on: the name of the apply rule.
        hosts_ppm: share of a POP's hosts that are control; 0: none.
        switchback_us: length of a period; 0: no switchback.
    """

    name: str
    clause: Clause
    on: str
    hosts_ppm: int
    switchback_us: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a select must say of a prefix.

    Attributes:
        select: the select's name.
        verdict: what it must say.
        prefix: of whom.
        pop: where.
        because: for `excludes`, what the prefix must miss: windows, duty_cycle, flap_rate or an excluded metric.
        clause: where it stands.
    """

    select: str
    verdict: Literal["includes", "excludes"]
    prefix: str
    pop: str
    because: str | None
    clause: Clause


@dataclass(frozen=True, slots=True)
class Membership:
    """A prefix's membership by window, oldest first: `1` member, `0` observed, `.` not; one for each window.

    `selected`: the prefix is selected already, so that `leave` bounds count.
    """

    prefix: str
    pop: str
    windows: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded telemetry.

    Attributes:
        path: rows of the collector, resolved against the policy file.
        until: no later sample counts; None: all of it.
    """

    path: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A `test` block. On a membership string it is run by the checker, on a recording by `tidegate test`."""

    name: str
    clause: Clause
    given: Membership | Recording
    expect: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class Pop:
    """One POP of the inventory."""

    name: str
    groups: tuple[str, ...]
    hosts: tuple[str, ...]
    own_prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """The inventory as policies see it; `pops` sorted by name."""

    pops: tuple[Pop, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """One checked policy file."""

    path: str
    digest: str  # "sha256:" and the hex SHA-256 of the file's bytes
    edition: str
    fleet: Fleet
    inventory: str  # the directory of hosts.yml, resolved against the policy file
    selects: tuple[Select, ...]
    applies: tuple[Apply, ...]
    learns: tuple[Learn, ...]
    initcwnds: tuple[Initcwnd, ...]
    guards: tuple[Guard, ...]
    experiments: tuple[Experiment, ...]
    tests: tuple[PolicyTest, ...]
