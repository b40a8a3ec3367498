"""Sets of values as intervals of whole numbers in base units."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tidegate_dsl.model import Condition

_UNBOUNDED: Final = 1 << 63  # above every value that a policy can write or a kernel report


class Interval(NamedTuple):
    """All whole numbers from `low` to `high`, both inclusive; empty where `low` is above `high`."""

    low: int
    high: int

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return self.low > self.high

    def meet(self, other: "Interval") -> "Interval":
        """What is in both."""
        return Interval(max(self.low, other.low), min(self.high, other.high))


EVERYTHING: Final = Interval(0, _UNBOUNDED)


def fulfilling(condition: Condition, *, selected: bool = False) -> Interval:
    """The values that a condition is true for.

    Args:
        condition: its `leave` stands in for its value where it has one and `selected` is given.
        selected: the prefix is selected already.
    """
    value = condition.leave if selected and condition.leave is not None else condition.value
    match condition.comparison:
        case "<":
            return Interval(0, value - 1)
        case "<=":
            return Interval(0, value)
        case ">":
            return Interval(value + 1, _UNBOUNDED)
        case ">=":
            return Interval(value, _UNBOUNDED)
        case "==":
            return Interval(value, value)


def cover(parts: Iterable[Interval], whole: Interval) -> bool:
    """Whether every number of `whole` is in one of the parts."""
    next_open = whole.low
    for part in sorted(parts):
        if part.low > next_open:
            break
        next_open = max(next_open, part.high + 1)
    return next_open > whole.high
