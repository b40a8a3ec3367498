"""Conditions on metrics: `where …` on samples, `exclude …` on the lookback."""

from tidegate_dsl.diagnostics import Findings, advice, listed, spelling
from tidegate_dsl.model import Clause, Comparison, Condition
from tidegate_dsl.syntax import tree
from tidegate_dsl.values import reduce_within
from tidegate_dsl.vocabulary import DIMENSION_RANGES, METRICS, UNITS, Metric, Place

_COMPARISONS: dict[str, Comparison] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}


def check_metric(
    name: tree.Name, place: Place, findings: Findings, *, value: tree.Quantity | None = None
) -> Metric | None:
    """The metric if it may stand in `place`; None where it is reported.

    `value` is what it is compared with, where there is one.
    """
    metric = METRICS.get(name.text)
    if metric is not None and place in metric.places:
        return metric
    fitting = [other for other in METRICS.values() if place in other.places]
    if metric is None:
        _report_unknown(name, place, fitting, value, findings)
    else:
        findings.error(
            "N103",
            f"`{name.text}` can not stand in `{place}`",
            name.span,
            notes=(f"{name.text}: {metric.meaning}",),
            help=f"metrics of `{place}`: {listed(other.name for other in fitting)}",
        )
    return None


def _report_unknown(
    name: tree.Name, place: Place, fitting: list[Metric], value: tree.Quantity | None, findings: Findings
) -> None:
    """The value's unit narrows what was meant: `loss < 5%` is not `lost`, a number of segments."""
    unit = UNITS.get(value.unit) if value and value.unit else None
    alike = [metric.name for metric in fitting if unit and metric.dimension == unit.dimension]
    meant = alike or [metric.name for metric in fitting]
    what = f"metrics of `{place}` in `{unit.name}`:" if unit and alike else f"metrics of `{place}`:"
    findings.error(
        "N102",
        f"there is no metric `{name.text}`",
        name.span,
        help=advice(name.text, meant, what=what),
        fix=spelling(name.span, name.text, meant),
    )


def check_condition(test: tree.Test, place: Place, clause: Clause, findings: Findings) -> Condition | None:
    """The condition in base units; None where it is reported."""
    metric = check_metric(test.metric, place, findings, value=test.value)
    if metric is None:
        return None
    if test.comparison is None or test.value is None:
        return Condition(metric.name, "==", 0 if test.negated else 1, clause)
    bounds = DIMENSION_RANGES[metric.dimension]
    value = reduce_within(test.value, metric.dimension, bounds, metric.name, findings)
    return None if value is None else Condition(metric.name, _COMPARISONS[test.comparison], value, clause)


def check_together(tests: tuple[tree.Test, ...], where: tuple[Condition, ...], findings: Findings) -> bool:
    """Whether some sample can pass all conditions; the first that makes it impossible is reported.

    Values are whole numbers in base units, so each condition leaves an interval and the intervals must meet.
    """
    left: dict[str, tuple[int, int]] = {}
    for test, condition in zip(tests, where, strict=True):
        dimension = DIMENSION_RANGES[METRICS[condition.metric].dimension]
        low, high = left.get(condition.metric, (dimension.low, dimension.high))
        value = condition.value
        match condition.comparison:
            case "<":
                high = min(high, value - 1)
            case "<=":
                high = min(high, value)
            case ">":
                low = max(low, value + 1)
            case ">=":
                low = max(low, value)
            case "==":
                low, high = max(low, value), min(high, value)
        if low > high:
            others = condition.metric in left
            findings.error(
                "C113",
                f"no sample can pass `{condition.metric}` here",
                test.span,
                help="it contradicts the condition before it" if others else "no value is in this range",
            )
            return False
        left[condition.metric] = (low, high)
    return True
