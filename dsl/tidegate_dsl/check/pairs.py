"""Blocks that stand on one rule: at most one guard and one experiment a rule, one experiment a POP."""

from collections.abc import Iterable

from tidegate_dsl.model import Apply, Experiment, Guard
from tidegate_dsl.syntax import find, tree

from .scope import Scope


def check_one_guard_per_rule(guards: Iterable[tuple[tree.Block, Guard]], scope: Scope) -> None:
    """Report a rule that two guards watch: they could want different things of it."""
    owners: dict[str, str] = {}
    for block, guard in guards:
        if guard.watch in owners:
            _report(block, f"`{owners[guard.watch]}` watches `{guard.watch}` already", scope)
        owners.setdefault(guard.watch, guard.name)


def check_one_experiment_per_pop(experiments: Iterable[tuple[tree.Block, Experiment]], scope: Scope) -> None:
    """Report a POP in which two experiments draw: a host can be control of one only."""
    owners: dict[str, str] = {}
    for block, experiment in experiments:
        apply: Apply | None = scope.applies.get(experiment.on)
        pops = apply.pops if apply else ()
        taken = next((pop for pop in pops if pop in owners), None)
        if taken is not None:
            _report(block, f"`{owners[taken]}` runs in `{taken}` already", scope)
        for pop in pops:
            owners.setdefault(pop, experiment.name)


def _report(block: tree.Block, message: str, scope: Scope) -> None:
    rule = find(block.body.clauses, tree.RuleOf)
    span = rule.apply.span if rule else block.span
    scope.of(block).findings.error("C121", message, span, help="keep one of the two")
