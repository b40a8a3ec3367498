"""The grammar of `select`."""

from typing import Final

from tidegate_dsl.diagnostics import nearest
from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Kind, Token
from tidegate_dsl.vocabulary import LEAVE, METRICS, REQUIREMENTS, SIDES, TRAFFIC_CLASSES

from .conditions import comparison, condition
from .shared import Grammar


def _measure(at: Cursor, first: Token) -> tree.Clause:
    metric = at.name("a metric")
    at.words("by", "prefix")
    ipv4 = at.length("the prefix length for IPv4, such as `/24`")
    ipv6 = at.length("the prefix length for IPv6, such as `/56`")
    return tree.Measure("measure", first.span.to(at.last), metric, ipv4, ipv6)


def _from(at: Cursor, first: Token) -> tree.Clause:
    at.words("traffic")
    traffic = at.choice(TRAFFIC_CLASSES, "a traffic class")
    tests: list[tree.Test] = []
    if not at.at_end:
        at.words("where")
        tests.append(condition(at, before=("and",)))
        while at.is_word("and"):
            at.take()
            tests.append(condition(at, before=("and",)))
    return tree.From("from", first.span.to(at.last), traffic, tuple(tests))


def _over(at: Cursor, first: Token) -> tree.Clause:
    over = at.quantity("a duration", before=("step",))
    at.words("step")
    step = at.quantity("a duration")
    return tree.Over("over", first.span.to(at.last), over, step)


def _rank(at: Cursor, first: Token) -> tree.Clause:
    side = share = absolute = None
    if at.is_word(*SIDES):
        side = at.name("a side")
        share = at.quantity("a percentage", before=("of",))
        at.words("of", "pop")
    elif at.is_other_word(METRICS) and (
        nearest(at.token.text, (*SIDES, *METRICS)) in SIDES or at.before(Kind.NUMBER)
    ):
        at.choice(SIDES, "`bottom`, `top` or a metric")  # reports the slip
    if side is None or at.is_word("and"):
        if side is not None:
            at.take()
        absolute = comparison(at, "`bottom`, `top` or a metric")
    return tree.Rank("rank", first.span.to(at.last), side, share, absolute)


def _require(at: Cursor, first: Token) -> tree.Clause:
    subject = at.choice(REQUIREMENTS, "a requirement")
    at.forms = tuple(form for form in at.forms if subject.text in form)
    at.comparison(REQUIREMENTS[subject.text])
    value, leave = _bound(at, subject.text), None
    if subject.text == "samples":
        at.words("per", "window")
    elif at.is_word("leave"):
        at.take()
        at.comparison(LEAVE[subject.text])
        leave = _bound(at, subject.text)
    return tree.Require(f"require {subject.text}", first.span.to(at.last), subject, value, leave)


def _bound(at: Cursor, subject: str) -> tree.Quantity:
    share = subject in ("duty_cycle", "flap_rate")
    return at.quantity("a percentage", before=("leave",)) if share else at.count("a count")


def _exclude(at: Cursor, first: Token) -> tree.Clause:
    test, leave = comparison(at, "a metric", before=("leave",)), None
    if at.is_word("leave"):
        at.take()
        at.comparison(test.comparison or "")
        leave = at.quantity("a value with its unit")
    return tree.Exclude("exclude", first.span.to(at.last), test, leave)


def _hold(at: Cursor, first: Token) -> tree.Clause:
    duration = at.quantity("a duration")
    return tree.Hold("hold", first.span.to(at.last), duration)


SELECT: Final[dict[str, Grammar]] = {
    "measure": _measure,
    "from": _from,
    "over": _over,
    "rank": _rank,
    "require": _require,
    "exclude": _exclude,
    "hold": _hold,
}
