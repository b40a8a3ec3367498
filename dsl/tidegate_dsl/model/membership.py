"""The mathematics of `require`, over one prefix's membership string (SPEC.md, "Persistence")."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from tidegate_dsl.vocabulary import REASONS

from .clauses import Bound
from .selects import Select

MEMBER: Final = "1"
NOT_MEMBER: Final = "0"
UNOBSERVED: Final = "."
PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What a membership string says.

    Attributes:
        lookback: windows in the lookback, observed or not.
        observed: windows in which the prefix was observed.
        member: windows in which it was a member.
        pairs: adjacent windows that were both observed.
        flips: such pairs in which membership differs.
    """

    lookback: int
    observed: int
    member: int
    pairs: int
    flips: int


@lru_cache(maxsize=4_096)  # while a file is edited, nearly every string is as it was
def figures(membership: str) -> Figures:
    """Count a membership string, oldest window first."""
    adjacent = [a + b for a, b in pairwise(membership) if UNOBSERVED not in (a, b)]
    return Figures(
        lookback=len(membership),
        observed=len(membership) - membership.count(UNOBSERVED),
        member=membership.count(MEMBER),
        pairs=len(adjacent),
        flips=sum(pair[0] != pair[1] for pair in adjacent),
    )


def missed(select: Select, membership: str, *, selected: bool = False) -> tuple[str, ...]:
    """Every requirement that a prefix with this membership misses, in the order windows, duty_cycle, flap_rate.

    A prefix that was observed in no window misses `windows`, and one that was a member in none misses `duty_cycle`,
    also where nothing is required. Comparisons are exact: whole numbers against parts per million.

    Args:
        select: whose `require` clauses count; samples and `exclude` are not visible in a membership string.
        membership: one character a window of the lookback, oldest first.
        selected: the prefix is selected already, so that `leave` bounds count.

    Raises:
        ValueError: the string's length is not the lookback's, or it holds another character than `1`, `0` and `.`.
    """
    if len(membership) != select.windows or set(membership) - {MEMBER, NOT_MEMBER, UNOBSERVED}:
        raise ValueError(f"membership must be {select.windows} characters `1`, `0` or `.`")
    seen = figures(membership)
    misses = {
        "windows": seen.observed < max(1, bound_of(select.min_windows, 1, selected=selected)),
        "duty_cycle": seen.member == 0
        or seen.member * PPM < bound_of(select.min_duty_cycle, 0, selected=selected) * seen.lookback,
        "flap_rate": seen.flips * PPM > bound_of(select.max_flap_rate, PPM, selected=selected) * seen.pairs,
    }
    return tuple(reason for reason in REASONS if misses[reason])


def judge(select: Select, membership: str, *, selected: bool = False) -> tuple[bool, str | None]:
    """Whether a prefix with this membership qualifies, and if not, the first requirement that it misses.

    Args:
        select: as in `missed`.
        membership: as in `missed`.
        selected: as in `missed`.

    Raises:
        ValueError: as `missed`.
    """
    misses = missed(select, membership, selected=selected)
    return not misses, next(iter(misses), None)


def bound_of(bound: Bound | None, otherwise: int, *, selected: bool) -> int:
    """The bound that counts for a prefix that is selected already, or for one that is not."""
    if bound is None:
        return otherwise
    return bound.leave if selected and bound.leave is not None else bound.value
