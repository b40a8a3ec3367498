"""What is said of guards and experiments: that one can never judge, or disturbs the other."""

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.model import PPM, Abort, Apply, Experiment, Guard, Policy
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.vocabulary import spell

from .rules import time_of
from .watermarks import between_watermarks


def check_guards(
    pairs: list[tuple[tree.Block, Guard]], policy: Policy, dead: frozenset[str], findings: Findings
) -> None:
    """Report guards of a policy that is otherwise right; a rule that never applies is reported itself."""
    rules = {rule.name: rule for rule in policy.applies}
    turns = {experiment.on: experiment for experiment in policy.experiments if experiment.switchback_us}
    for block, guard in pairs:
        if guard.watch in dead:
            continue
        own = findings.below(block.above)
        if guard.max_churn and guard.max_churn.value == PPM:
            churn = find(block.body.clauses, tree.Churn)
            own.warning(
                "W104",
                "a churn of 100% can never be exceeded",
                churn.span if churn else block.span,
                notes=("no more can leave than there are",),
                help="remove it, or allow less",
            )
        if not guard.aborts:
            _check_without_abort(block, own)
            continue
        _check_aborts(block, guard, own)
        _check_arms(block, guard, rules[guard.watch], own)
        if experiment := turns.get(guard.watch):
            abort = find(block.body.clauses, tree.Abort)
            own.error(
                "C128",
                f"`{experiment.name}` turns `{guard.watch}` on and off, and this compares its prefixes all the time",
                abort.span if abort else block.span,
                notes=(
                    f"switchback on line {experiment.clause.line}: the lookback holds times of both kinds",
                    "treated prefixes were not treated in some of them, so that the arms mix",
                ),
                help="try the rule by `hold_out N% of hosts`, or guard it with `limit churn` only",
            )


def _check_without_abort(block: tree.Block, findings: Findings) -> None:
    for clause in block.body.clauses:
        if isinstance(clause, tree.PerArm | tree.OnFailure):
            findings.warning(
                "W115",
                f"`{clause.key}` has no effect here",
                clause.span,
                notes=("it is about `abort`, and this guard has none",),
                help="remove it, or add `abort when METRIC pN < N% of hold_out`",
            )


def _check_aborts(block: tree.Block, guard: Guard, findings: Findings) -> None:
    """Of two aborts that differ in their share only, the one that comes true later says nothing."""
    soonest: dict[tuple[str, int, str], Abort] = {}
    for abort in guard.aborts:
        known = soonest.setdefault(_compared(abort), abort)
        if (abort.ratio_ppm - known.ratio_ppm) * (1 if abort.comparison == "<" else -1) > 0:
            soonest[_compared(abort)] = abort
    clauses = (clause for clause in block.body.clauses if isinstance(clause, tree.Abort))
    for clause, abort in zip(clauses, guard.aborts, strict=True):
        other = soonest[_compared(abort)]
        if other is not abort:
            findings.warning(
                "W104",
                "another abort is true whenever this one is",
                clause.span,
                notes=(f"line {other.clause.line}: {other.clause.text}",),
                help="remove it, or correct one of the two",
            )


def _compared(abort: Abort) -> tuple[str, int, str]:
    return abort.metric, abort.percentile, abort.comparison


def _check_arms(block: tree.Block, guard: Guard, rule: Apply, findings: Findings) -> None:
    """A POP's limit holds both arms."""
    least = guard.min_per_arm.value if guard.min_per_arm else 1
    small = [
        pop for pop in rule.pops if pop in rule.max_prefixes and rule.max_prefixes[pop].value < 2 * least
    ]
    clause = find(block.body.clauses, tree.PerArm) or find(block.body.clauses, tree.Abort)
    if not small or clause is None:
        return
    bounds = dict.fromkeys(rule.max_prefixes[pop] for pop in small)
    notes = tuple(
        f"line {bound.clause.line}: {bound.clause.text}, treated and held out together" for bound in bounds
    )
    way_out = f"ask for fewer prefixes per arm, or allow {2 * least} prefixes per pop or more"
    if len(small) == len(rule.pops):
        findings.error(
            "C127",
            f"this guard can never judge: `{rule.name}` never has {least} prefixes in both arms",
            clause.span,
            notes=notes,
            help=way_out,
        )
    else:
        where = ", ".join(f"`{pop}`" for pop in small)
        findings.warning(
            "W113",
            f"this guard can not judge in {where}: there are never {least} prefixes in both arms",
            clause.span,
            notes=notes,
            help=way_out,
        )


def check_experiments(
    pairs: list[tuple[tree.Block, Experiment]], policy: Policy, dead: frozenset[str], findings: Findings
) -> None:
    """Warn of experiments of a policy that is otherwise right."""
    rules = {rule.name: rule for rule in policy.applies}
    hosts = {pop.name: len(pop.hosts) for pop in policy.fleet.pops}
    for block, experiment in pairs:
        rule = rules[experiment.on]
        if rule.name in dead:
            continue
        own = findings.below(block.above)
        share, turns = find(block.body.clauses, tree.HoldOut), find(block.body.clauses, tree.Switchback)
        alone = [pop for pop in rule.pops if hosts[pop] < 2]
        if share and turns is None and alone:
            where = ", ".join(f"`{pop}`" for pop in alone)
            own.warning(
                "W112",
                f"no host of {where} can be control",
                share.span,
                notes=("one of two hosts or more can be control; the inventory has fewer there",),
                help="add `switchback 6h`, which needs no second host, or try the rule in other POPs",
            )
        if turns:
            _check_turns(turns, experiment, rule, between_watermarks(policy), own)


def _check_turns(
    turns: tree.Switchback, experiment: Experiment, rule: Apply, between_us: int, findings: Findings
) -> None:
    """Warn of turns that are too long for the rule's time, or too short for runs, which decide by turns."""
    start, end = time_of(rule)
    pair_us = 2 * experiment.switchback_us
    if rule.active and (end - start).total_seconds() * 1_000_000 < pair_us:
        findings.warning(
            "W114",
            f"`{rule.name}` is not active for one turn on and one off",
            turns.span,
            notes=(
                f"two turns last {spell(pair_us, 'duration')}",
                f"line {rule.active.clause.line}: {rule.active.clause.text}",
            ),
            help="take shorter turns, or let the rule be active for longer",
        )
    if experiment.switchback_us < between_us:
        least = spell(between_us, "duration")
        findings.warning(
            "W117",
            f"turns of {turns.period.text} are shorter than the time between two runs",
            turns.span,
            notes=(f"a run decides which turn it is, and between two lies the longest step, {least}",),
            help=f"take turns of `{least}` or longer, or shorter steps",
        )
