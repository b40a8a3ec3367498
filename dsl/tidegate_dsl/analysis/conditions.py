"""Which conditions of a select decide nothing, and which leave nothing, by interval algebra."""

from collections.abc import Sequence

from tidegate_dsl.model import PPM, Condition, Select

from .formed import of_lookback, of_member, of_window
from .intervals import EVERYTHING, Interval, cover, fulfilling


def has_no_member(select: Select) -> bool:
    """Whether no value of a window makes a member: `from` and the rank contradict each other."""
    return of_member(select).empty


def excluding_all(select: Select) -> int | None:
    """The `exclude` clause with which the last possible value of a metric is left out; None where some remain.

    A metric that stands alone: whether values of two metrics can come together is not asked.
    """
    for index, clause in enumerate(select.exclude):
        so_far = [each for each in select.exclude[: index + 1] if each.metric == clause.metric]
        if cover(map(fulfilling, so_far), of_lookback(select, clause.metric)):
            return index
    return None


def idle_excludes(select: Select) -> tuple[int, ...]:
    """The `exclude` clauses that leave out nobody more, neither to enter nor to stay; all of them can go together.

    A clause also leaves out who has no value of its metric; one that could be the only one to do so is kept.
    """
    idle: list[int] = []
    for index in reversed(range(len(select.exclude))):  # of two alike, the second is too many
        metric = select.exclude[index].metric
        others = [
            other
            for place, other in enumerate(select.exclude)
            if other.metric == metric and place != index and place not in idle
        ]
        valued = bool(others) or metric == select.metric or any(c.metric == metric for c in select.where)
        if valued and all(_adds_nothing(select, index, others, selected=state) for state in (False, True)):
            idle.append(index)
    return tuple(sorted(idle))


def _adds_nothing(select: Select, index: int, others: Sequence[Condition], *, selected: bool) -> bool:
    clause = select.exclude[index]
    struck = fulfilling(clause, selected=selected).meet(of_lookback(select, clause.metric, selected=selected))
    return cover((fulfilling(other, selected=selected) for other in others), struck)


def idle_conditions(where: Sequence[Condition]) -> tuple[int, ...]:
    """The conditions of `where` that others on the same metric imply; all of them can go together."""
    idle: list[int] = []
    for index in reversed(range(len(where))):
        others = [
            other
            for place, other in enumerate(where)
            if other.metric == where[index].metric and place != index and place not in idle
        ]
        left = EVERYTHING
        for other in others:
            left = left.meet(fulfilling(other))
        if others and _within(left, fulfilling(where[index])):
            idle.append(index)
    return tuple(sorted(idle))


def absolute_is_idle(select: Select) -> bool:
    """Whether the rank's comparison holds in every window; not asked where it is there to let every prefix in."""
    rank = select.rank
    if rank.absolute is None:
        return False
    bounded = rank.share_ppm is not None or any(c.metric == select.metric for c in select.where)
    return bounded and _within(of_window(select, select.metric), fulfilling(rank.absolute))


def share_is_idle(select: Select) -> bool:
    """Whether the rank's share is all of the POP, and a comparison beside it decides alone."""
    return select.rank.share_ppm == PPM and select.rank.absolute is not None


def _within(inner: Interval, outer: Interval) -> bool:
    return cover((outer,), inner)
