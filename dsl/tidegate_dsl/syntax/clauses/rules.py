"""The grammar of `apply`, `guard` and `experiment`."""

from typing import Final

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Token
from tidegate_dsl.vocabulary import FAILURES

from .shared import Grammar, hold_out, in_pops


def _to(at: Cursor, first: Token) -> tree.Clause:
    select = at.name("the name of a select")
    return tree.To("to", first.span.to(at.last), select)


def _set_algorithm(at: Cursor, first: Token) -> tree.Clause:
    at.words("congestion_control")
    algorithm = at.name("a congestion control algorithm")
    return tree.SetAlgorithm("set", first.span.to(at.last), algorithm)


def _when(at: Cursor, first: Token) -> tree.Clause:
    at.words("transfer_size")
    at.comparison(">=")
    size = at.quantity("a size")
    return tree.When("when", first.span.to(at.last), size)


def _fallback(at: Cursor, first: Token) -> tree.Clause:
    at.words("ungated")
    return tree.Phrase("fallback", first.span.to(at.last))


def _limit(at: Cursor, first: Token) -> tree.Clause:
    count = at.count("a count")
    new = len(at.forms) > 1 and at.is_word("new")
    at.words(*(("new", "prefixes", "per", "run") if new else ("prefixes", "per", "pop")))
    return tree.Limit("limit … new prefixes" if new else "limit", first.span.to(at.last), count, new)


def _active(at: Cursor, first: Token) -> tree.Clause:
    start = at.time()
    at.words("until")
    end = at.time()
    return tree.Active("active", first.span.to(at.last), start, end)


def _rule_of(at: Cursor, first: Token) -> tree.Clause:
    apply = at.name("the name of an apply")
    return tree.RuleOf(first.text, first.span.to(at.last), apply)


def _abort(at: Cursor, first: Token) -> tree.Clause:
    at.words("when")
    first_word = at.token.text
    if first_word[:1] == "p" and first_word[1:].isdigit():
        raise at.fail("a metric", way_out="the percentile stands behind its metric: `delivery_rate p10`")
    metric = at.name("a metric")
    percentile = at.name("a percentile such as `p10`")
    comparison = at.comparison("<", ">")
    share = at.quantity("a percentage", before=("of",))
    at.words("of", "hold_out")
    return tree.Abort("abort", first.span.to(at.last), metric, percentile, comparison, share)


def _per_arm(at: Cursor, first: Token) -> tree.Clause:
    at.words("prefixes")
    at.comparison(">=")
    count = at.count("a count")
    at.words("per", "arm")
    return tree.PerArm("require", first.span.to(at.last), count)


def _churn(at: Cursor, first: Token) -> tree.Clause:
    at.words("churn")
    at.comparison("<=")
    share = at.quantity("a percentage", before=("per",))
    at.words("per", "run")
    return tree.Churn("limit", first.span.to(at.last), share)


def _on_failure(at: Cursor, first: Token) -> tree.Clause:
    duration = None
    if at.choice(FAILURES, "what to do").text == "release":
        at.words("for")
        duration = at.quantity("a duration")
    return tree.OnFailure("on_failure", first.span.to(at.last), duration)


def _switchback(at: Cursor, first: Token) -> tree.Clause:
    period = at.quantity("a duration")
    return tree.Switchback("switchback", first.span.to(at.last), period)


APPLY: Final[dict[str, Grammar]] = {
    "to": _to,
    "in": in_pops,
    "set": _set_algorithm,
    "when": _when,
    "fallback": _fallback,
    "limit": _limit,
    "hold_out": hold_out("prefixes"),
    "active": _active,
}  # `override` holds a block, so the parser itself reads it
OVERRIDE_GRAMMAR: Final[dict[str, Grammar]] = {"when": _when, "limit": _limit}
GUARD: Final[dict[str, Grammar]] = {
    "watch": _rule_of,
    "abort": _abort,
    "require": _per_arm,
    "limit": _churn,
    "on_failure": _on_failure,
}
EXPERIMENT: Final[dict[str, Grammar]] = {
    "on": _rule_of,
    "hold_out": hold_out("hosts"),
    "switchback": _switchback,
}
