"""The clauses of `apply`, `guard` and `experiment`."""

from dataclasses import dataclass

from .frame import Body, Clause, Name, Quantity


@dataclass(frozen=True, slots=True)
class To(Clause):
    """`to SELECT`."""

    select: Name


@dataclass(frozen=True, slots=True)
class In(Clause):
    """`in POP, GROUP [except POP, …]`."""

    included: tuple[Name, ...]
    excepted: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class SetAlgorithm(Clause):
    """`set congestion_control ALGORITHM`."""

    algorithm: Name


@dataclass(frozen=True, slots=True)
class When(Clause):
    """`when transfer_size >= SIZE`."""

    size: Quantity


@dataclass(frozen=True, slots=True)
class Limit(Clause):
    """`limit N prefixes per pop` or `limit N new prefixes per run`."""

    count: Quantity
    new: bool


@dataclass(frozen=True, slots=True)
class HoldOut(Clause):
    """`hold_out N% of prefixes` of a rule, `of hosts` of an experiment, `of destinations` of what is learned."""

    share: Quantity


@dataclass(frozen=True, slots=True)
class Active(Clause):
    """`active TIME until TIME`."""

    start: Name
    end: Name


@dataclass(frozen=True, slots=True)
class Override(Clause):
    """`override POP { … }`; its span is its header."""

    pop: Name
    body: Body


@dataclass(frozen=True, slots=True)
class RuleOf(Clause):
    """`watch APPLY` of a guard, `on APPLY` of an experiment."""

    apply: Name


@dataclass(frozen=True, slots=True)
class Abort(Clause):
    """`abort when METRIC pN COMPARISON N% of hold_out`."""

    metric: Name
    percentile: Name
    comparison: str
    share: Quantity


@dataclass(frozen=True, slots=True)
class PerArm(Clause):
    """`require prefixes >= N per arm`."""

    count: Quantity


@dataclass(frozen=True, slots=True)
class Churn(Clause):
    """`limit churn <= N% per run`."""

    share: Quantity


@dataclass(frozen=True, slots=True)
class OnFailure(Clause):
    """`on_failure freeze` (no duration) or `on_failure release for DURATION`."""

    duration: Quantity | None


@dataclass(frozen=True, slots=True)
class Switchback(Clause):
    """`switchback DURATION`."""

    period: Quantity
