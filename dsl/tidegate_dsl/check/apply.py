"""An `apply` block: what selected prefixes get, where, and within which limits."""

from tidegate_dsl.diagnostics import Edit, Fix, advice, spelling
from tidegate_dsl.model import Active, Apply, Bound
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import check_time, count_within, reduce_within
from tidegate_dsl.vocabulary import HOLD_OUT_RANGE, OVERRIDE, TRANSFER_SIZE_RANGE, Range

from .scope import Scope
from .structure import check_structure


def check_apply(block: tree.Block, scope: Scope) -> Apply | None:
    """The rule; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    to, where, set_ = find(clauses, tree.To), find(clauses, tree.In), find(clauses, tree.SetAlgorithm)
    select = scope.select(to.select) if to else None
    pops = scope.pops(where) if where else None
    algorithm = _algorithm(set_.algorithm, scope) if set_ else None
    overrides = _overrides(clauses, pops, scope)
    min_bytes = _thresholds(clauses, overrides, scope)
    fallback = find(clauses, tree.Phrase)
    if fallback and not _has_threshold(block.body):
        scope.findings.error(
            "C108",
            f"`{fallback.key}` without `when`: there is no threshold to fall back from",
            fallback.span,
            help="remove it, or add `when transfer_size >= SIZE`",
        )
    most = _most(clauses, overrides, scope)
    per_run = _limit(clauses, scope, new=True)
    active = _active(find(clauses, tree.Active), scope)
    hold_out = find(clauses, tree.HoldOut)
    share: int | None = 0
    if hold_out:
        share = reduce_within(hold_out.share, "ratio", HOLD_OUT_RANGE, "hold_out", scope.findings)
    if select is None or pops is None or algorithm is None or share is None:
        return None
    return Apply(
        name=block.name.text,
        clause=scope.clause(block.span),
        select=select.name,
        pops=pops,
        congestion_control=algorithm,
        min_bytes={pop: min_bytes.get(pop, min_bytes.get("", 0)) for pop in pops},
        ungated_fallback=fallback is not None,
        max_prefixes={pop: bound for pop in pops if (bound := most.get(pop, most.get("")))},
        max_new_per_run=per_run,
        hold_out_ppm=share,
        hold_out=scope.clause(hold_out.span) if hold_out else None,
        active=active,
    )


def _algorithm(name: tree.Name, scope: Scope) -> str | None:
    allowed = scope.limits.algorithms
    if name.text in allowed.names:
        return name.text
    scope.findings.error(
        "N106",
        f"`{name.text}` is no algorithm that a policy may set",
        name.span,
        notes=(f"algorithms listed in {allowed.origin}",),
        help=advice(name.text, allowed.names),
        fix=spelling(name.span, name.text, allowed.names),
    )
    return None


def _overrides(
    clauses: tuple[tree.Clause, ...], pops: tuple[str, ...] | None, scope: Scope
) -> list[tree.Override]:
    """The overrides; what is wrong with their POPs or their form is reported."""
    overrides = [clause for clause in clauses if isinstance(clause, tree.Override)]
    for override in overrides:
        shown = f"override {override.pop.text}"
        check_structure(shown, override.span, override.body, OVERRIDE, scope.text, scope.findings)
        if not override.body.clauses and not override.body.broken:
            scope.findings.error(
                "C118",
                f"{shown} overrides nothing",
                override.span,
                help="add `when transfer_size >= SIZE` or `limit N prefixes per pop`",
            )
        pop = scope.pop(override.pop)
        if pop is not None and pops is not None and pop not in pops:
            scope.findings.error(
                "C105",
                f"this rule does not apply in `{pop}`",
                override.pop.span,
                help="add the POP to `in`, or remove the override",
            )
    return overrides


def _thresholds(
    clauses: tuple[tree.Clause, ...], overrides: list[tree.Override], scope: Scope
) -> dict[str, int]:
    """Bytes by POP; "" is the rule's own threshold."""
    thresholds: dict[str, int] = {}
    for pop, body in _bodies(clauses, overrides):
        when = find(body, tree.When)
        if when:
            thresholds.setdefault(pop, _threshold(when, scope))
    return thresholds


def _most(clauses: tuple[tree.Clause, ...], overrides: list[tree.Override], scope: Scope) -> dict[str, Bound]:
    """Most prefixes by POP; "" is the rule's own limit."""
    most: dict[str, Bound] = {}
    for pop, body in _bodies(clauses, overrides):
        bound = _limit(body, scope, new=False)
        if bound:
            most.setdefault(pop, bound)
    return most


def _bodies(
    clauses: tuple[tree.Clause, ...], overrides: list[tree.Override]
) -> list[tuple[str, tuple[tree.Clause, ...]]]:
    return [("", clauses), *((override.pop.text, override.body.clauses) for override in overrides)]


def _active(clause: tree.Active | None, scope: Scope) -> Active | None:
    if clause is None:
        return None
    start, end = check_time(clause.start, scope.findings), check_time(clause.end, scope.findings)
    if start is None or end is None:
        return None
    if end <= start:
        scope.findings.error(
            "C117",
            f"the rule ends at {clause.end.text}, and starts at {clause.start.text}",
            clause.start.span.to(clause.end.span),
            help="write the earlier time first; a date is its first moment in UTC",
            fix=_swapped(clause.start, clause.end) if end < start else None,
        )
        return None
    return Active(start, end, scope.clause(clause.span))


def _swapped(first: tree.Name, second: tree.Name) -> Fix:
    edits = (Edit(first.span, second.text), Edit(second.span, first.text))
    return Fix("swap the two times", edits)


def _threshold(when: tree.When, scope: Scope) -> int:
    return reduce_within(when.size, "size", TRANSFER_SIZE_RANGE, "threshold", scope.findings) or 0


def _has_threshold(body: tree.Body) -> bool:
    """Whether the rule has a `when`, even one that is reported, of its own or in an override."""
    bodies = [body, *(clause.body for clause in body.clauses if isinstance(clause, tree.Override))]
    return any({"when", "", "override"} & each.broken or find(each.clauses, tree.When) for each in bodies)


def _limit(clauses: tuple[tree.Clause, ...], scope: Scope, *, new: bool) -> Bound | None:
    clause = next(
        (clause for clause in clauses if isinstance(clause, tree.Limit) and clause.new == new), None
    )
    if clause is None:
        return None
    most = scope.limits.new_prefixes_per_run_max if new else scope.limits.prefixes_per_pop_max
    what = "new prefixes per run" if new else "prefixes per pop"
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
