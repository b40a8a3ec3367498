"""What is said of `apply` rules: that one can never apply, is not measured, or has a clause that adds nothing."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.model import Apply, Policy
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.vocabulary import UNITS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
Time = tuple[datetime, datetime]  # from the first until before the second


def time_of(rule: Apply) -> Time:
    """When a rule applies."""
    return (rule.active.start, rule.active.end) if rule.active else _ALWAYS


def check_rules(pairs: list[tuple[tree.Block, Apply]], policy: Policy, findings: Findings) -> frozenset[str]:
    """Report rules of a policy that is otherwise right; the names of those that can never apply."""
    measured = {experiment.on for experiment in policy.experiments}
    dead = _dead(pairs, policy, findings)
    for block, rule in pairs:
        if rule.name in dead:
            continue
        own = findings.below(block.above)
        if not rule.hold_out_ppm and rule.name not in measured:
            own.warning(
                "W103",
                f"what `{rule.name}` gains can not be measured",
                block.span,
                notes=("everything that it selects is treated, and nothing is left to compare with",),
                help="add `hold_out 10% of prefixes`, or an `experiment` on it",
            )
        _check_new_limit(block, rule, own)
        _check_overrides(block, own)
    return dead


def _dead(pairs: list[tuple[tree.Block, Apply]], policy: Policy, findings: Findings) -> frozenset[str]:
    """Rules whose every prefix is another one's at all times, or whose time no watermark is in."""
    guarded = {
        guard.watch for guard in policy.guards
    }  # a rule that was stopped leaves its prefixes to others
    steps = {select.step_us for select in policy.selects}
    taken: dict[tuple[str, str], list[tuple[Time, Apply]]] = {}
    dead: set[str] = set()
    for block, rule in pairs:
        own = findings.below(block.above)
        active = find(block.body.clauses, tree.Active)
        if active and not any(_watermark_within(time_of(rule), step) for step in steps):
            own.error(
                "C125",
                f"`{rule.name}` can never apply: no window ends in its time",
                active.start.span.to(active.end.span),
                help="let it be active for a step or longer",
            )
            dead.add(rule.name)
            continue
        earlier = [taken.get((rule.select, pop), []) for pop in rule.pops]
        if all(_covered(time_of(rule), [time for time, _ in claims]) for claims in earlier):
            owners = {owner.name: owner.clause.line for claims in earlier for _, owner in claims}
            own.error(
                "C125",
                f"`{rule.name}` can never apply: earlier rules have every prefix of `{rule.select}` in its POPs",
                block.span,
                notes=tuple(f"`{name}` on line {line}" for name, line in owners.items()),
                help="move it before them, take its POPs or time from them, or limit how many they have",
            )
            dead.add(rule.name)
            continue
        if rule.name not in guarded and rule.max_new_per_run is None:
            for pop in rule.pops:
                if pop not in rule.max_prefixes:
                    taken.setdefault((rule.select, pop), []).append((time_of(rule), rule))
    return frozenset(dead)


def _watermark_within(time: Time, step_us: int) -> bool:
    """Whether a window of this step ends at a moment of `time`."""
    start, end = ((moment - _EPOCH) // timedelta(microseconds=1) for moment in time)
    return -(-start // step_us) * step_us < end


def _covered(time: Time, others: Iterable[Time]) -> bool:
    """Whether the others leave no moment of `time`."""
    left, end = time
    for start, stop in sorted(others):
        if start > left:
            break
        left = max(left, stop)
    return left >= end


def _check_new_limit(block: tree.Block, rule: Apply, findings: Findings) -> None:
    limits = [clause for clause in block.body.clauses if isinstance(clause, tree.Limit) and clause.new]
    if not limits or rule.max_new_per_run is None or len(rule.max_prefixes) < len(rule.pops):
        return
    most = sum(bound.value for bound in rule.max_prefixes.values())
    if most <= rule.max_new_per_run.value:
        findings.warning(
            "W104",
            f"a limit of {limits[0].count.text} new prefixes per run can never strike",
            limits[0].span,
            notes=(f"the limits of its POPs are {most} prefixes together",),
            help="remove it, or admit fewer",
        )


def _check_overrides(block: tree.Block, findings: Findings) -> None:
    own = {clause.key: _value(clause) for clause in block.body.clauses}
    for override in block.body.clauses:
        if not isinstance(override, tree.Override):
            continue
        for clause in override.body.clauses:
            if own.get(clause.key) is not None and own[clause.key] == _value(clause):
                findings.warning(
                    "W110",
                    f"this repeats the rule's own `{clause.key}`",
                    clause.span,
                    help="remove it, or correct one of the two",
                )


def _value(clause: tree.Clause) -> int | None:
    """The value of a `when` or `limit`, which has been checked."""
    if isinstance(clause, tree.When) and clause.size.unit:
        return clause.size.times(UNITS[clause.size.unit].factor)
    return clause.count.mantissa if isinstance(clause, tree.Limit) else None
