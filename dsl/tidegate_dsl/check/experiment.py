"""An `experiment` block: control by host or by time."""

from tidegate_dsl.model import Experiment
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import reduce_within
from tidegate_dsl.vocabulary import HOSTS_RANGE, SWITCHBACK_RANGE

from .scope import Scope


def check_experiment(block: tree.Block, scope: Scope) -> Experiment | None:
    """The experiment; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    on, hosts = find(clauses, tree.RuleOf), find(clauses, tree.HoldOut)
    turns = find(clauses, tree.Switchback)
    apply = scope.apply(on.apply) if on else None
    share: int | None = 0
    period: int | None = 0
    if hosts:
        share = reduce_within(hosts.share, "ratio", HOSTS_RANGE, "hold_out", scope.findings)
    if turns:
        period = reduce_within(turns.period, "duration", SWITCHBACK_RANGE, "switchback", scope.findings)
    if not (hosts or turns or block.body.broken):
        scope.findings.error(
            "C119",
            f"experiment {block.name.text} has no control",
            block.span,
            help="add `hold_out 10% of hosts` or `switchback 6h`",
        )
        return None
    if apply is None or share is None or period is None:
        return None
    return Experiment(block.name.text, scope.clause(block.span), apply.name, share, period)
