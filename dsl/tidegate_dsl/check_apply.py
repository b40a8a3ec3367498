"""An `apply` block: what selected prefixes get, where, and within which limits."""

from . import syntax
from .limits import Limit
from .model import Apply, Bound
from .quantities import count_within, reduce_within
from .scope import Scope
from .structure import check_structure, find
from .suggest import advice
from .vocabulary import HOLD_OUT_RANGE, OVERRIDE, TRANSFER_SIZE_RANGE, Range


def check_apply(block: syntax.Block, scope: Scope) -> Apply | None:
    """The rule; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    to, where, set_ = find(clauses, syntax.To), find(clauses, syntax.In), find(clauses, syntax.SetAlgorithm)
    select = scope.select(to.select) if to else None
    pops = scope.pops(where) if where else None
    algorithm = _algorithm(set_.algorithm, scope) if set_ else None
    min_bytes = _thresholds(clauses, pops, scope)
    fallback = find(clauses, syntax.Phrase)
    if fallback and not _has_threshold(block.body):
        scope.findings.error(
            "C108",
            f"`{fallback.key}` without `when`: there is no threshold to fall back from",
            fallback.span,
            help="remove it, or add `when transfer_size >= SIZE`",
        )
    limits = [clause for clause in clauses if isinstance(clause, syntax.Limit)]
    per_pop = _limit(
        [clause for clause in limits if not clause.new], scope.limits.prefixes_per_pop_max, scope
    )
    per_run = _limit(
        [clause for clause in limits if clause.new], scope.limits.new_prefixes_per_run_max, scope
    )
    hold_out = find(clauses, syntax.HoldOut)
    share = 0
    if hold_out:
        share = reduce_within(hold_out.share, "ratio", HOLD_OUT_RANGE, "hold_out", scope.findings) or 0
    if select is None or pops is None or algorithm is None:
        return None
    return Apply(
        name=block.name.text,
        clause=scope.clause(block.span),
        select=select.name,
        pops=pops,
        congestion_control=algorithm,
        min_bytes={pop: min_bytes.get(pop, min_bytes.get("", 0)) for pop in pops},
        ungated_fallback=fallback is not None,
        max_prefixes_per_pop=per_pop,
        max_new_per_run=per_run,
        hold_out_ppm=share,
        hold_out=scope.clause(hold_out.span) if hold_out else None,
    )


def _algorithm(name: syntax.Name, scope: Scope) -> str | None:
    allowed = scope.limits.algorithms
    if name.text in allowed.names:
        return name.text
    scope.findings.error(
        "N106",
        f"`{name.text}` is no algorithm that a policy may set",
        name.span,
        notes=(f"algorithms listed in {allowed.origin}",),
        help=advice(name.text, allowed.names),
    )
    return None


def _thresholds(
    clauses: tuple[syntax.Clause, ...], pops: tuple[str, ...] | None, scope: Scope
) -> dict[str, int]:
    """Bytes by POP; "" is the rule's own threshold."""
    thresholds: dict[str, int] = {}
    when = find(clauses, syntax.When)
    if when:
        thresholds[""] = _threshold(when, scope)
    for override in clauses:
        if not isinstance(override, syntax.Override):
            continue
        check_structure(
            f"override {override.pop.text}", override.span, override.body, OVERRIDE, scope.findings
        )
        pop = scope.pop(override.pop)
        if pop is not None and pops is not None and pop not in pops:
            scope.findings.error(
                "C105",
                f"this rule does not apply in `{pop}`",
                override.pop.span,
                help="add the POP to `in`, or remove the override",
            )
        inner = find(override.body.clauses, syntax.When)
        if inner:
            thresholds.setdefault(override.pop.text, _threshold(inner, scope))
    return thresholds


def _threshold(when: syntax.When, scope: Scope) -> int:
    return reduce_within(when.size, "size", TRANSFER_SIZE_RANGE, "threshold", scope.findings) or 0


def _has_threshold(body: syntax.Body) -> bool:
    """Whether the rule has a `when`, even one that is reported, of its own or in an override."""
    written = "when" in body.broken or "" in body.broken or "override" in body.broken
    return written or any(isinstance(clause, syntax.When | syntax.Override) for clause in body.clauses)


def _limit(written: list[syntax.Limit], most: Limit, scope: Scope) -> Bound | None:
    if not written:
        return None
    clause = written[0]
    what = "new prefixes per run" if clause.new else "prefixes per pop"
    if clause.count.mantissa > most.value:
        scope.findings.error(
            "T104",
            f"a limit of {clause.count.text} {what} is above the limit of {most.value}",
            clause.count.span,
            notes=(f"limit set in {most.origin}",),
            help=f"use `{most.value}`, or raise the limit in a reviewed change",
        )
        return None
    value = count_within(clause.count, Range(1, most.value), f"limit of {what}", scope.findings)
    return None if value is None else Bound(value, scope.clause(clause.span))
