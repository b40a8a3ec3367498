"""The grammar of conditions on metrics."""

from collections.abc import Collection
from typing import Final

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.vocabulary import COMPARISONS, METRICS

_SIGNS: Final = ("<", ">", "=", "!")


def comparison(at: Cursor, what: str, *, before: Collection[str] = ()) -> tree.Test:
    """Take `METRIC COMPARISON VALUE`, or a flag, which has no place here: the checker says so."""
    if at.token.text == "not":  # not `is_word`, which would propose it in an editor
        raise at.fail(what, way_out="flags, and so `not`, stand in `where` only")
    metric = at.name(what)
    if at.at_end and _is_flag(metric):
        return tree.Test(metric, None, None, False, metric.span)
    return _compared(at, metric, before)


def condition(at: Cursor, *, before: Collection[str] = ()) -> tree.Test:
    """Take `METRIC COMPARISON VALUE`, or `[not] FLAG`."""
    first = at.token.span
    if at.token.text == "!":
        raise at.fail("a metric", way_out="write `not` before a flag")
    negated = at.is_word("not")
    if negated:
        at.take()
    metric = at.name("a metric")
    flag = _is_flag(metric) if metric.text in METRICS else at.at_end or at.is_word(*before)
    if flag and at.token.text[:1] in _SIGNS:
        raise at.fail("the end of the condition", way_out="a flag stands alone or behind `not`")
    if flag:
        return tree.Test(metric, None, None, negated, first.to(metric.span))
    if negated:
        raise at.fail(
            "the end of the condition",
            way_out="`not` stands before a flag only; turn the comparison round",
        )
    return _compared(at, metric, before)


def _is_flag(metric: tree.Name) -> bool:
    return metric.text in METRICS and METRICS[metric.text].dimension == "flag"


def _compared(at: Cursor, metric: tree.Name, before: Collection[str]) -> tree.Test:
    sign = at.comparison(*COMPARISONS)
    value = at.quantity("a value with its unit", before=before)
    return tree.Test(metric, sign, value, False, metric.span.to(value.span))
