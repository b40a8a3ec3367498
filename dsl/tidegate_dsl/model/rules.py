"""What selected prefixes get, what stops it, and how its gain is measured."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .clauses import Bound, Clause


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
