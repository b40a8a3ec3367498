"""Which values a metric can have: of a sample that counts, of a member's window, of a prefix's lookback."""

from typing import Final

from tidegate_dsl.model import Select

from .intervals import EVERYTHING, Interval, fulfilling
from .persistence import bounds_of

# Their value of a window is one of its samples', and that of the lookback one of its windows' (SPEC.md, section 5).
MEDIANS: Final = frozenset({"delivery_rate", "pacing_rate", "rtt", "rttvar", "cwnd", "inflight"})
MINIMA: Final = frozenset({"min_rtt"})


def of_window(select: Select, metric: str) -> Interval:
    """The values that a window can have: `where` bounds them where a window's value is one of a sample.

    A ratio is formed of sums, goodput and CPU pressure of other rows: `where` says nothing of them.
    """
    left = EVERYTHING
    if metric in MEDIANS | MINIMA:
        for condition in select.where:
            if condition.metric == metric:
                left = left.meet(fulfilling(condition))
    return left


def of_member(select: Select) -> Interval:
    """The values of the measured metric that a window with membership can have."""
    absolute = select.rank.absolute
    left = of_window(select, select.metric)
    return left if absolute is None else left.meet(fulfilling(absolute))


def of_lookback(select: Select, metric: str, *, selected: bool = False) -> Interval:
    """The values over the lookback that a prefix can have whose membership qualifies.

    They are those of windows. Of the measured metric they are even those of members where the duty cycle leaves no
    place for another: the k-th smallest of n values, of which m are members, is a member's when k <= m and members
    are low, or when k > n - m and they are high. n is largest, and that hardest, with every window observed.
    """
    absolute = select.rank.absolute
    if metric != select.metric or absolute is None or metric not in MEDIANS | MINIMA:
        return of_window(select, metric)
    bounds = bounds_of(select, selected=selected)
    rank = 1 if metric in MINIMA else -(-bounds.lookback // 2)
    members_are_low = absolute.comparison in ("<", "<=")
    certain = rank <= bounds.members if members_are_low else rank > bounds.lookback - bounds.members
    return of_member(select) if certain else of_window(select, metric)
