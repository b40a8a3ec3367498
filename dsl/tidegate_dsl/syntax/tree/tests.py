"""The clauses of `test`."""

from dataclasses import dataclass

from .frame import Clause, Name


@dataclass(frozen=True, slots=True)
class Given(Clause):
    """`given PREFIX in POP membership STRING [selected]`."""

    prefix: Name
    pop: Name
    membership: Name
    selected: bool


@dataclass(frozen=True, slots=True)
class GivenTelemetry(Clause):
    """`given telemetry STRING [until TIME]`."""

    path: Name
    until: Name | None


@dataclass(frozen=True, slots=True)
class Expect(Clause):
    """`expect SELECT VERDICT PREFIX [in POP] [because REASON]`."""

    select: Name
    verdict: Name
    prefix: Name
    pop: Name | None
    because: Name | None
