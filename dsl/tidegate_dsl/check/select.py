"""A `select` block: its values in base units, its windows, its conditions."""

from dataclasses import replace
from typing import Final, Literal

from tidegate_dsl.diagnostics import Edit, Fix
from tidegate_dsl.model import Bound, Clause, Condition, Rank, Select, TrafficClass
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import count_within, reduce_within
from tidegate_dsl.vocabulary import (
    DIMENSION_RANGES,
    HOLD_RANGE,
    MAX_WINDOWS,
    METRICS,
    RANK_RANGE,
    REQUIREMENTS,
    SAMPLES_RANGE,
    STEP_RANGE,
    WINDOWS_RANGE,
    Range,
    spell,
)

from .conditions import check_condition, check_metric, check_together
from .scope import Scope

_SECOND_US: Final = 1_000_000
_BITS: Final = {"IPv4": 32, "IPv6": 128}


def check_select(block: tree.Block, scope: Scope) -> Select | None:
    """The select; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    measure = _measure(find(clauses, tree.Measure), scope)
    origin = _from(find(clauses, tree.From), scope)
    time = _over(find(clauses, tree.Over), scope)
    rank = _rank(find(clauses, tree.Rank), measure[0] if measure else None, scope)
    bounds = _requirements(clauses, time, scope)
    exclude = [_exclude(clause, scope) for clause in clauses if isinstance(clause, tree.Exclude)]
    hold_us, hold = _hold(find(clauses, tree.Hold), scope)
    required = {clause.subject.text for clause in clauses if isinstance(clause, tree.Require)}
    if (
        bounds.keys() < required
        or measure is None
        or origin is None
        or time is None
        or rank is None
        or hold_us is None
        or None in exclude
    ):
        return None
    metric, ipv4, ipv6 = measure
    traffic, where = origin
    return Select(
        name=block.name.text,
        clause=scope.clause(block.span),
        metric=metric,
        prefix_length_ipv4=ipv4,
        prefix_length_ipv6=ipv6,
        traffic=traffic,
        where=where,
        over_us=time[0],
        step_us=time[1],
        rank=rank,
        min_duty_cycle=bounds.get("duty_cycle"),
        max_flap_rate=bounds.get("flap_rate"),
        min_windows=bounds.get("windows"),
        min_samples=bounds.get("samples"),
        exclude=tuple(condition for condition in exclude if condition is not None),
        hold_us=hold_us,
        hold=hold,
    )


def _measure(clause: tree.Measure | None, scope: Scope) -> tuple[str, int, int] | None:
    """Metric and prefix lengths."""
    if clause is None:
        return None
    metric = check_metric(clause.metric, "measure", scope.findings)
    if clause.ipv6.mantissa <= _BITS["IPv4"] < clause.ipv4.mantissa:
        scope.findings.error(
            "T105",
            f"IPv4 has no prefix of length `{clause.ipv4.text}`",
            clause.ipv4.span,
            help="the length for IPv4 stands first",
            fix=Fix(
                "swap the two lengths",
                (Edit(clause.ipv4.span, clause.ipv6.text), Edit(clause.ipv6.span, clause.ipv4.text)),
            ),
        )
        return None
    ipv4 = _length(clause.ipv4, "IPv4", scope)
    ipv6 = _length(clause.ipv6, "IPv6", scope)
    return (metric.name, ipv4, ipv6) if metric and ipv4 and ipv6 else None


def _length(length: tree.Quantity, family: str, scope: Scope) -> int | None:
    limits = scope.limits
    widest = limits.prefix_length_min_ipv4 if family == "IPv4" else limits.prefix_length_min_ipv6
    if length.mantissa > _BITS[family]:
        scope.findings.error(
            "T105",
            f"{family} has no prefix of length `{length.text}`",
            length.span,
            help=f"at most /{_BITS[family]}",
        )
        return None
    if length.mantissa < widest.value:
        scope.findings.error(
            "T104",
            f"{family} prefixes of `{length.text}` are wider than the limit of /{widest.value}",
            length.span,
            notes=(f"limit set in {widest.origin}",),
            help=f"use `/{widest.value}` or longer, or lower the limit in a reviewed change",
        )
        return None
    return length.mantissa


def _from(clause: tree.From | None, scope: Scope) -> tuple[TrafficClass, tuple[Condition, ...]] | None:
    """Traffic class and conditions on samples."""
    if clause is None:
        return None
    at = scope.clause(clause.span)
    conditions = [check_condition(test, "where", at, scope.findings) for test in clause.tests]
    where = tuple(condition for condition in conditions if condition is not None)
    if len(where) < len(conditions) or not check_together(clause.tests, where, scope.findings):
        return None
    traffic: dict[str, TrafficClass] = {
        "client": "client",
        "pop_to_pop": "pop_to_pop",
        "intra_pop": "intra_pop",
        "origin": "origin",
    }
    return traffic[clause.traffic.text], where


def _over(clause: tree.Over | None, scope: Scope) -> tuple[int, int] | None:
    """Lookback and step, in microseconds."""
    if clause is None:
        return None
    over = reduce_within(
        clause.over, "duration", Range(1, MAX_WINDOWS * STEP_RANGE.high), "lookback", scope.findings
    )
    step = reduce_within(clause.step, "duration", STEP_RANGE, "step", scope.findings)
    if over is None or step is None:
        return None
    if step % _SECOND_US:
        scope.findings.error(
            "T105",
            f"a step of `{clause.step.text}` is not a whole number of seconds",
            clause.step.span,
            help="windows start on whole seconds of UTC; write whole seconds",
        )
        return None
    if over % step:
        shorter = over - over % step
        nearest = shorter or step
        scope.findings.error(
            "C101",
            f"a step of {clause.step.text} does not divide the lookback of {clause.over.text}",
            clause.step.span,
            help=f"look back over {spell(nearest, 'duration')}, or choose another step",
        )
        return None
    if over // step > MAX_WINDOWS:
        scope.findings.error(
            "C102",
            f"{clause.over.text} in steps of {clause.step.text} are {over // step} windows, more than {MAX_WINDOWS}",
            clause.over.span.to(clause.step.span),
            help=f"look back over at most {spell(step * MAX_WINDOWS, 'duration')}, or take longer steps",
        )
        return None
    return over, step


def _rank(clause: tree.Rank | None, measured: str | None, scope: Scope) -> Rank | None:
    if clause is None:
        return None
    at = scope.clause(clause.span)
    share = absolute = None
    if clause.share is not None:
        share = reduce_within(clause.share, "ratio", RANK_RANGE, "rank", scope.findings)
    if clause.absolute is not None:
        absolute = _absolute(clause.absolute, measured, at, scope)
    if (share is None) != (clause.share is None) or (absolute is None) != (clause.absolute is None):
        return None
    side: Literal["bottom", "top"] = (
        "top" if clause.side is not None and clause.side.text == "top" else "bottom"
    )
    return Rank(side, share, absolute, at)


def _absolute(test: tree.Test, measured: str | None, at: Clause, scope: Scope) -> Condition | None:
    """The comparison of the measured metric; None where it is reported, or `measure` is."""
    if measured is None:
        return None
    if check_metric(test.metric, "measure", scope.findings) is None:
        return None
    if test.metric.text != measured:
        scope.findings.error(
            "C115",
            f"the rank compares `{test.metric.text}`, and `{measured}` is measured",
            test.metric.span,
            help=f"compare `{measured}`, or measure `{test.metric.text}`",
        )
        return None
    return check_condition(test, "measure", at, scope.findings)


def _requirements(
    clauses: tuple[tree.Clause, ...], time: tuple[int, int] | None, scope: Scope
) -> dict[str, Bound]:
    """Bounds by subject; a reported one is left out."""
    bounds: dict[str, Bound] = {}
    for clause in clauses:
        if isinstance(clause, tree.Require):
            bound = _bound(clause, time, scope)
            if bound is not None:
                bounds.setdefault(clause.subject.text, bound)
    return bounds


def _bound(clause: tree.Require, time: tuple[int, int] | None, scope: Scope) -> Bound | None:
    subject = clause.subject.text
    value = _required(clause.value, subject, scope)
    leave = None if clause.leave is None else _required(clause.leave, subject, scope)
    if value is None or (leave is None) != (clause.leave is None):
        return None
    if subject == "windows" and time is not None and value > time[0] // time[1]:
        scope.findings.error(
            "C103",
            f"{value} windows are required, the lookback holds {time[0] // time[1]}",
            clause.value.span,
            help=f"require at most {time[0] // time[1]} windows, or look back over a longer time",
        )
        return None
    if leave is not None and clause.leave is not None:
        upward = REQUIREMENTS[subject] == ">="
        if (leave > value) if upward else (leave < value):
            _report_leave(clause.value, clause.leave, scope)
            return None
    return Bound(value, scope.clause(clause.span), leave)


def _required(quantity: tree.Quantity, subject: str, scope: Scope) -> int | None:
    if subject in ("duty_cycle", "flap_rate"):
        return reduce_within(quantity, "ratio", DIMENSION_RANGES["ratio"], subject, scope.findings)
    bounds = SAMPLES_RANGE if subject == "samples" else WINDOWS_RANGE
    return count_within(quantity, bounds, subject, scope.findings)


def _exclude(clause: tree.Exclude, scope: Scope) -> Condition | None:
    """The condition with its `leave`; None where it is reported."""
    condition = check_condition(clause.test, "exclude", scope.clause(clause.span), scope.findings)
    if condition is None or clause.leave is None or clause.test.value is None:
        return condition
    dimension = METRICS[condition.metric].dimension
    leave = reduce_within(
        clause.leave, dimension, DIMENSION_RANGES[dimension], condition.metric, scope.findings
    )
    if leave is None:
        return None
    if (leave > condition.value) if condition.comparison in ("<", "<=") else (leave < condition.value):
        _report_leave(clause.test.value, clause.leave, scope)
        return None
    return replace(condition, leave=leave)


def _report_leave(enter: tree.Quantity, leave: tree.Quantity, scope: Scope) -> None:
    scope.findings.error(
        "C116",
        f"a prefix that enters by {enter.text} would leave again by {leave.text}",
        leave.span,
        notes=("between the two bounds a selected prefix stays and no other enters",),
        help="swap the two, or remove `leave`",
    )


def _hold(clause: tree.Hold | None, scope: Scope) -> tuple[int | None, Clause | None]:
    """Hold time in microseconds, 0 without the clause and None where it is reported."""
    if clause is None:
        return 0, None
    return reduce_within(clause.duration, "duration", HOLD_RANGE, "hold", scope.findings), scope.clause(
        clause.span
    )
