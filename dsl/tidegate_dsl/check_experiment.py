"""An `experiment` block: control by host or by time."""

from . import syntax
from .model import Experiment
from .quantities import reduce_within
from .scope import Scope
from .structure import find
from .vocabulary import HOSTS_RANGE, SWITCHBACK_RANGE


def check_experiment(block: syntax.Block, scope: Scope) -> Experiment | None:
    """The experiment; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    on, hosts = find(clauses, syntax.RuleOf), find(clauses, syntax.HoldOut)
    turns = find(clauses, syntax.Switchback)
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
