"""A `guard` block: what stops a rule in a POP."""

import re
from typing import Final, Literal

from tidegate_dsl.model import Abort, Bound, Guard
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import count_within, reduce_within
from tidegate_dsl.vocabulary import (
    ABORT_RANGE,
    CHURN_RANGE,
    PERCENTILE_RANGE,
    PREFIXES_PER_ARM_RANGE,
    RELEASE_RANGE,
)

from .conditions import check_metric
from .scope import Scope

_PERCENTILE: Final = re.compile(r"p([1-9][0-9]?)")
_SIDES: dict[str, Literal["<", ">"]] = {"<": "<", ">": ">"}


def check_guard(block: tree.Block, scope: Scope) -> Guard | None:
    """The guard; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    watch = find(clauses, tree.RuleOf)
    apply = scope.apply(watch.apply) if watch else None
    written = [clause for clause in clauses if isinstance(clause, tree.Abort)]
    aborts = [_abort(clause, scope) for clause in written]
    per_arm = _per_arm(find(clauses, tree.PerArm), scope)
    churn = _churn(find(clauses, tree.Churn), scope)
    failure = find(clauses, tree.OnFailure)
    release = None
    if failure and failure.duration:
        release = reduce_within(failure.duration, "duration", RELEASE_RANGE, "release", scope.findings)
    if not block.body.broken and not written and not find(clauses, tree.Churn):
        scope.findings.error(
            "C119",
            f"guard {block.name.text} stops nothing",
            block.span,
            help="add `abort when METRIC pN < N% of hold_out` or `limit churn <= N% per run`",
        )
    if written and failure is None and "on_failure" not in block.body.broken:
        scope.findings.error(
            "C120",
            "nothing says what this abort does",
            written[0].span,
            help="add `on_failure freeze` or `on_failure release for 24h`",
        )
    if apply is None or watch is None or None in aborts:
        return None
    if written and apply.hold_out_ppm == 0:
        where = f"line {apply.hold_out.line}: {apply.hold_out.text}" if apply.hold_out else None
        scope.findings.error(
            "C120",
            f"`{apply.name}` holds nothing out to compare with",
            written[0].span,
            notes=(where,) if where else (),
            help=f"write `hold_out 10% of prefixes` in `{apply.name}`",
        )
        return None
    return Guard(
        name=block.name.text,
        clause=scope.clause(block.span),
        watch=apply.name,
        aborts=tuple(abort for abort in aborts if abort is not None),
        min_per_arm=per_arm,
        max_churn=churn,
        release_us=release,
        on_failure=scope.clause(failure.span) if failure else None,
    )


def _abort(clause: tree.Abort, scope: Scope) -> Abort | None:
    metric = check_metric(clause.metric, "abort", scope.findings)
    percentile = _percentile(clause.percentile, scope)
    share = reduce_within(clause.share, "ratio", ABORT_RANGE, "share", scope.findings)
    if metric is None or percentile is None or share is None:
        return None
    return Abort(metric.name, percentile, _SIDES[clause.comparison], share, scope.clause(clause.span))


def _percentile(name: tree.Name, scope: Scope) -> int | None:
    written = _PERCENTILE.fullmatch(name.text)
    value = int(written[1]) if written else 0
    if PERCENTILE_RANGE.low <= value <= PERCENTILE_RANGE.high:
        return value
    scope.findings.error(
        "T105",
        f"`{name.text}` is no percentile",
        name.span,
        help=f"write `p{PERCENTILE_RANGE.low}` to `p{PERCENTILE_RANGE.high}`; `p50` is the median",
    )
    return None


def _per_arm(clause: tree.PerArm | None, scope: Scope) -> Bound | None:
    if clause is None:
        return None
    value = count_within(clause.count, PREFIXES_PER_ARM_RANGE, "prefixes per arm", scope.findings)
    return None if value is None else Bound(value, scope.clause(clause.span))


def _churn(clause: tree.Churn | None, scope: Scope) -> Bound | None:
    if clause is None:
        return None
    value = reduce_within(clause.share, "ratio", CHURN_RANGE, "churn", scope.findings)
    return None if value is None else Bound(value, scope.clause(clause.span))
