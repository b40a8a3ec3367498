"""The clauses of `learn` and `initcwnd`."""

from dataclasses import dataclass

from .frame import Clause, Name, Quantity


@dataclass(frozen=True, slots=True)
class Toward(Clause):
    """`toward DIRECTION, DIRECTION`."""

    directions: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Smooth(Clause):
    """`smooth N every DURATION`."""

    weight: Quantity
    every: Quantity


@dataclass(frozen=True, slots=True)
class SetInitcwnd(Clause):
    """`set initcwnd between N and N segments`."""

    low: Quantity
    high: Quantity


@dataclass(frozen=True, slots=True)
class Expire(Clause):
    """`expire DURATION`."""

    duration: Quantity


@dataclass(frozen=True, slots=True)
class For(Clause):
    """`for ipv4|ipv6|PREFIX, …`."""

    targets: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class SetWindow(Clause):
    """`set initcwnd N segments` as it stands, `set initrwnd N segments` beside what is learned."""

    segments: Quantity
