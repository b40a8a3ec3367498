"""A policy's tests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .clauses import Clause


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
class PolicyTest:
    """A `test` block. On a membership string it is run by the checker, on a recording by `tidegate test`."""

    name: str
    clause: Clause
    given: Membership | Recording
    expect: tuple[Expectation, ...]
