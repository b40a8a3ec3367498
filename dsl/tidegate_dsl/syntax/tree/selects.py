"""The clauses of `select`."""

from dataclasses import dataclass

from .frame import Clause, Name, Quantity, Test


@dataclass(frozen=True, slots=True)
class Measure(Clause):
    """`measure METRIC by prefix /LENGTH /LENGTH`."""

    metric: Name
    ipv4: Quantity
    ipv6: Quantity


@dataclass(frozen=True, slots=True)
class From(Clause):
    """`from traffic CLASS [where …]`."""

    traffic: Name
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Over(Clause):
    """`over DURATION step DURATION`."""

    over: Quantity
    step: Quantity


@dataclass(frozen=True, slots=True)
class Rank(Clause):
    """`rank SIDE N% of pop [and METRIC COMPARISON VALUE]`, or only the comparison."""

    side: Name | None
    share: Quantity | None
    absolute: Test | None


@dataclass(frozen=True, slots=True)
class Require(Clause):
    """`require SUBJECT COMPARISON VALUE [leave COMPARISON VALUE]`."""

    subject: Name
    value: Quantity
    leave: Quantity | None


@dataclass(frozen=True, slots=True)
class Exclude(Clause):
    """`exclude METRIC COMPARISON VALUE [leave COMPARISON VALUE]`."""

    test: Test
    leave: Quantity | None


@dataclass(frozen=True, slots=True)
class Hold(Clause):
    """`hold DURATION`."""

    duration: Quantity
