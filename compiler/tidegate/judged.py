"""Each clause of a select, judged on one prefix, with what was found: what `explain` and `test` show.

Selection itself asks only whether a prefix passes (`select`, `tidegate_dsl.model.membership`); this says why.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate_dsl.model import PPM, Bound, Clause, Figures, Select, bound_of, figures, missed
from tidegate_dsl.vocabulary import LEAVE, METRICS, REQUIREMENTS, spell

from tidegate.select import Measurement, meets
from tidegate.values import percent, say

RANK = "rank"


@dataclass(frozen=True, slots=True)
class Judged:
    """One clause.

    Attributes:
        clause: where it stands.
        reason: what a test calls it: `windows`, `duty_cycle`, `flap_rate` or an excluded metric; `rank` for the rank.
        passed: whether the prefix passes it.
        found: what was found, in words.
        leaves: the `leave` bound counted, because the prefix is selected already.
        bound: the bound that counted, in words: `>= 60%`, or `leave < 50%`.
    """

    clause: Clause
    reason: str
    passed: bool
    found: str
    leaves: bool
    bound: str

    def to_json(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "clause": self.clause.text,
            "line": self.clause.line,
            "reason": self.reason,
            "passed": self.passed,
            "found": self.found,
            "bound": self.bound,
            "leaves": self.leaves,
        }


def misses(select: Select, membership: str, measured: Measurement | None, *, selected: bool) -> list[str]:
    """Every reason for which a select leaves a prefix out, in the order of selection; none: it qualifies.

    Args:
        select: whose clauses count.
        membership: one character a window of the lookback, oldest first.
        measured: for the `exclude` clauses; None where only the membership is known.
        selected: the prefix is selected already, so that `leave` bounds count.
    """
    found = list(missed(select, membership, selected=selected))
    if measured is not None:
        struck = [c.metric for c in select.exclude if meets(measured, c, selected=selected)]
        found += dict.fromkeys(struck)
    return found


def judged(
    select: Select, membership: str, measured: Measurement | None, *, selected: bool
) -> tuple[Judged, ...]:
    """Every clause that decides, in the order of selection; arguments as of `misses`."""
    seen = figures(membership)
    rank = Judged(
        select.rank.clause,
        RANK,
        seen.member > 0,
        f"member in {counted(seen.member, 'window')}",
        leaves=False,
        bound=">= 1 window",
    )
    return (
        rank,
        *_requirements(select, seen, selected=selected),
        *(() if measured is None else _exclusions(select, measured, selected=selected)),
    )


def _requirements(select: Select, seen: Figures, *, selected: bool) -> Iterator[Judged]:
    if bound := select.min_windows:
        least = bound_of(bound, 1, selected=selected)
        yield _required("windows", bound, seen.observed >= least, f"{seen.observed} observed", selected)
    if bound := select.min_duty_cycle:
        least = bound_of(bound, 0, selected=selected)
        share = f"{percent(seen.member, seen.lookback)} ({seen.member} of {counted(seen.lookback, 'window')})"
        passed = seen.member > 0 and seen.member * PPM >= least * seen.lookback
        yield _required("duty_cycle", bound, passed, share, selected)
    if bound := select.max_flap_rate:
        most = bound_of(bound, PPM, selected=selected)
        changes = f"{counted(seen.flips, 'change')} in {counted(seen.pairs, 'pair')}"
        share = f"{percent(seen.flips, seen.pairs)} ({changes})"
        yield _required("flap_rate", bound, seen.flips * PPM <= most * seen.pairs, share, selected)


def _required(reason: str, bound: Bound, passed: bool, found: str, selected: bool) -> Judged:
    leaves = selected and bound.leave is not None
    value = bound_of(bound, 0, selected=selected)
    shown = str(value) if reason == "windows" else spell(value, "ratio")
    word = f"leave {LEAVE[reason]}" if leaves else REQUIREMENTS[reason]
    return Judged(bound.clause, reason, passed, found, leaves, f"{word} {shown}")


def _exclusions(select: Select, measured: Measurement, *, selected: bool) -> Iterator[Judged]:
    for condition in select.exclude:
        leaves = selected and condition.leave is not None
        value = condition.leave if leaves and condition.leave is not None else condition.value
        limit = spell(value, METRICS[condition.metric].dimension)
        yield Judged(
            condition.clause,
            condition.metric,
            not meets(measured, condition, selected=selected),
            say(condition.metric, measured.metric(condition.metric)),
            leaves,
            f"{'leave' if leaves else 'not'} {condition.comparison} {limit}",
        )


def counted(number: int, thing: str) -> str:
    """`1 window`, `2 windows`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
