"""A checked policy: names resolved, units reduced to integers, POP sets expanded. What the compiler reads.

Base units: time in microseconds, size in bytes, rate in bits per second, ratio in parts per million (ppm),
windows (initcwnd) in segments. `line` is the clause's line in the policy file, for `because` and `explain`.
"""

from dataclasses import dataclass
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
    """`metric comparison value`, value in the metric's base unit; a flag (`app_limited`) compares with 0 or 1."""

    metric: str
    comparison: Comparison | Literal["=="]
    value: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Rank:
    """The lowest `share_ppm` of a POP's observed prefixes, by the measured metric, window by window."""

    share_ppm: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Bound:
    """An inclusive bound of a `require` clause: duty_cycle and flap_rate in ppm, windows and samples as counts."""

    value: int
    clause: Clause


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
class Apply:
    """What selected prefixes get, in which POPs, within which limits."""

    name: str
    clause: Clause
    select: str
    pops: tuple[str, ...]
    congestion_control: str
    min_bytes: dict[str, int]  # by POP, overrides resolved; 0: from the start
    ungated_fallback: bool
    max_prefixes_per_pop: Bound | None
    max_new_per_run: Bound | None
    hold_out_ppm: int
    hold_out: Clause | None


@dataclass(frozen=True, slots=True)
class Learn:
    """How far learned initial windows between POPs may grow (Riptide)."""

    name: str
    clause: Clause
    pops: tuple[str, ...]
    smooth_ppm: int
    every_us: int
    initcwnd_min: int
    initcwnd_max: int
    expire_us: int


@dataclass(frozen=True, slots=True)
class MembershipTest:
    """A `test` block: a prefix's membership by window, and what select must say of it."""

    name: str
    clause: Clause
    prefix: str
    pop: str
    membership: (
        str  # by window, oldest first: "1" member, "0" observed, "." not observed; one for each window
    )
    select: str
    expect: Literal["includes", "excludes"]
    because: str | None  # duty_cycle, flap_rate or windows


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
    tests: tuple[MembershipTest, ...]
