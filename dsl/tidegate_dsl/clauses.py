"""The grammar of every clause: one function each, called behind its first word."""

from collections.abc import Callable
from typing import Final

from . import syntax
from .cursor import Cursor
from .lexer import Kind, Token
from .suggest import nearest
from .vocabulary import (
    DIRECTIONS,
    FAILURES,
    FAMILIES,
    LEAVE,
    METRICS,
    REQUIREMENTS,
    SIDES,
    TRAFFIC_CLASSES,
    VERDICTS,
    WINDOWS,
)

Grammar = Callable[[Cursor, Token], syntax.Clause]


def _measure(at: Cursor, first: Token) -> syntax.Clause:
    metric = at.name("a metric")
    at.words("by", "prefix")
    ipv4 = at.length("the prefix length for IPv4, such as `/24`")
    ipv6 = at.length("the prefix length for IPv6, such as `/56`")
    return syntax.Measure("measure", first.span.to(at.last), metric, ipv4, ipv6)


def _from(at: Cursor, first: Token) -> syntax.Clause:
    at.words("traffic")
    traffic = at.choice(TRAFFIC_CLASSES, "a traffic class")
    tests: list[syntax.Test] = []
    if not at.at_end:
        at.words("where")
        tests.append(at.test(before=("and",)))
        while at.is_word("and"):
            at.take()
            tests.append(at.test(before=("and",)))
    return syntax.From("from", first.span.to(at.last), traffic, tuple(tests))


def _over(at: Cursor, first: Token) -> syntax.Clause:
    over = at.quantity("a duration", before=("step",))
    at.words("step")
    step = at.quantity("a duration")
    return syntax.Over("over", first.span.to(at.last), over, step)


def _rank(at: Cursor, first: Token) -> syntax.Clause:
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
        absolute = at.comparison_of_metric("`bottom`, `top` or a metric")
    return syntax.Rank("rank", first.span.to(at.last), side, share, absolute)


def _require(at: Cursor, first: Token) -> syntax.Clause:
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
    return syntax.Require(f"require {subject.text}", first.span.to(at.last), subject, value, leave)


def _bound(at: Cursor, subject: str) -> syntax.Quantity:
    share = subject in ("duty_cycle", "flap_rate")
    return at.quantity("a percentage", before=("leave",)) if share else at.count("a count")


def _exclude(at: Cursor, first: Token) -> syntax.Clause:
    test, leave = at.comparison_of_metric("a metric", before=("leave",)), None
    if at.is_word("leave"):
        at.take()
        at.comparison(test.comparison or "")
        leave = at.quantity("a value with its unit")
    return syntax.Exclude("exclude", first.span.to(at.last), test, leave)


def _hold(at: Cursor, first: Token) -> syntax.Clause:
    duration = at.quantity("a duration")
    return syntax.Hold("hold", first.span.to(at.last), duration)


def _to(at: Cursor, first: Token) -> syntax.Clause:
    select = at.name("the name of a select")
    return syntax.To("to", first.span.to(at.last), select)


def _in(at: Cursor, first: Token) -> syntax.Clause:
    included = _pops(at)
    excepted: tuple[syntax.Name, ...] = ()
    if at.is_word("except"):
        at.take()
        excepted = _pops(at)
    return syntax.In("in", first.span.to(at.last), included, excepted)


def _pops(at: Cursor) -> tuple[syntax.Name, ...]:
    names = [_pop(at)]
    while at.is_punctuation(","):
        at.take()
        names.append(_pop(at))
    return tuple(names)


def _pop(at: Cursor) -> syntax.Name:
    if at.token.text == "except":  # not `is_word`, which would propose it in an editor
        raise at.fail("a POP or group")
    return at.name("a POP or group")


def _set_algorithm(at: Cursor, first: Token) -> syntax.Clause:
    at.words("congestion_control")
    algorithm = at.name("a congestion control algorithm")
    return syntax.SetAlgorithm("set", first.span.to(at.last), algorithm)


def _when(at: Cursor, first: Token) -> syntax.Clause:
    at.words("transfer_size")
    at.comparison(">=")
    size = at.quantity("a size")
    return syntax.When("when", first.span.to(at.last), size)


def _fallback(at: Cursor, first: Token) -> syntax.Clause:
    at.words("ungated")
    return syntax.Phrase("fallback", first.span.to(at.last))


def _limit(at: Cursor, first: Token) -> syntax.Clause:
    count = at.count("a count")
    new = len(at.forms) > 1 and at.is_word("new")
    at.words(*(("new", "prefixes", "per", "run") if new else ("prefixes", "per", "pop")))
    return syntax.Limit("limit … new" if new else "limit", first.span.to(at.last), count, new)


def _hold_out(of: str) -> Grammar:
    def grammar(at: Cursor, first: Token) -> syntax.Clause:
        share = at.quantity("a percentage", before=("of",))
        at.words("of", of)
        return syntax.HoldOut("hold_out", first.span.to(at.last), share)

    return grammar


def _active(at: Cursor, first: Token) -> syntax.Clause:
    start = at.time()
    at.words("until")
    end = at.time()
    return syntax.Active("active", first.span.to(at.last), start, end)


def _observe(at: Cursor, first: Token) -> syntax.Clause:
    at.words("cwnd", "by", "destination")
    return syntax.Phrase("observe", first.span.to(at.last))


def _toward(at: Cursor, first: Token) -> syntax.Clause:
    directions = [at.choice(DIRECTIONS, "a direction")]
    while at.is_punctuation(","):
        at.take()
        directions.append(at.choice(DIRECTIONS, "a direction"))
    return syntax.Toward("toward", first.span.to(at.last), tuple(directions))


def _smooth(at: Cursor, first: Token) -> syntax.Clause:
    weight = at.quantity("a weight above 0 and up to 1", before=("every",))
    at.words("every")
    every = at.quantity("a duration")
    return syntax.Smooth("smooth", first.span.to(at.last), weight, every)


def _set_learned(at: Cursor, first: Token) -> syntax.Clause:
    window = at.choice(WINDOWS, "a window").text
    at.forms = tuple(form for form in at.forms if window in form)
    if window == "initrwnd":
        segments = at.quantity("a number of segments")
        return syntax.SetWindow(f"set {window}", first.span.to(at.last), segments)
    at.words("between")
    low = at.quantity("a number of segments", before=("and",))
    at.words("and")
    high = at.quantity("a number of segments")
    return syntax.SetInitcwnd(f"set {window}", first.span.to(at.last), low, high)


def _expire(at: Cursor, first: Token) -> syntax.Clause:
    duration = at.quantity("a duration")
    return syntax.Expire("expire", first.span.to(at.last), duration)


def _for(at: Cursor, first: Token) -> syntax.Clause:
    targets = [_target(at)]
    while at.is_punctuation(","):
        at.take()
        targets.append(_target(at))
    return syntax.For("for", first.span.to(at.last), tuple(targets))


def _target(at: Cursor) -> syntax.Name:
    if at.token.kind is Kind.WORD:
        return at.choice(FAMILIES, "`ipv4`, `ipv6` or a prefix", what="write a prefix or one of")
    return at.prefix()


def _set_window(at: Cursor, first: Token) -> syntax.Clause:
    at.words("initcwnd")
    segments = at.quantity("a number of segments")
    return syntax.SetWindow("set", first.span.to(at.last), segments)


def _rule_of(at: Cursor, first: Token) -> syntax.Clause:
    apply = at.name("the name of an apply")
    return syntax.RuleOf(first.text, first.span.to(at.last), apply)


def _abort(at: Cursor, first: Token) -> syntax.Clause:
    at.words("when")
    first_word = at.token.text
    if first_word[:1] == "p" and first_word[1:].isdigit():
        raise at.fail("a metric", way_out="the percentile stands behind its metric: `delivery_rate p10`")
    metric = at.name("a metric")
    percentile = at.name("a percentile such as `p10`")
    comparison = at.comparison("<", ">")
    share = at.quantity("a percentage", before=("of",))
    at.words("of", "hold_out")
    return syntax.Abort("abort", first.span.to(at.last), metric, percentile, comparison, share)


def _per_arm(at: Cursor, first: Token) -> syntax.Clause:
    at.words("prefixes")
    at.comparison(">=")
    count = at.count("a count")
    at.words("per", "arm")
    return syntax.PerArm("require", first.span.to(at.last), count)


def _churn(at: Cursor, first: Token) -> syntax.Clause:
    at.words("churn")
    at.comparison("<=")
    share = at.quantity("a percentage", before=("per",))
    at.words("per", "run")
    return syntax.Churn("limit", first.span.to(at.last), share)


def _on_failure(at: Cursor, first: Token) -> syntax.Clause:
    duration = None
    if at.choice(FAILURES, "what to do").text == "release":
        at.words("for")
        duration = at.quantity("a duration")
    return syntax.OnFailure("on_failure", first.span.to(at.last), duration)


def _switchback(at: Cursor, first: Token) -> syntax.Clause:
    period = at.quantity("a duration")
    return syntax.Switchback("switchback", first.span.to(at.last), period)


def _given(at: Cursor, first: Token) -> syntax.Clause:
    if at.is_word("telemetry"):
        return _given_telemetry(at, first)
    prefix = at.prefix()
    at.words("in")
    pop = at.name("a POP")
    at.words("membership")
    membership = at.string('a membership string such as `"1010..."`')
    selected = at.is_word("selected")
    if selected:
        at.take()
    return syntax.Given("given", first.span.to(at.last), prefix, pop, membership, selected)


def _given_telemetry(at: Cursor, first: Token) -> syntax.Clause:
    at.take()
    path, until = at.string("the telemetry's path in quotes"), None
    if at.is_word("until"):
        at.take()
        until = at.time()
    return syntax.GivenTelemetry("given", first.span.to(at.last), path, until)


def _expect(at: Cursor, first: Token) -> syntax.Clause:
    select = at.name("the name of a select")
    verdict = at.choice(VERDICTS, "`includes` or `excludes`")
    prefix = at.prefix()
    pop = because = None
    if at.is_word("in"):
        at.take()
        pop = at.name("a POP")
    if at.is_word("because"):
        at.take()
        because = at.name("a reason")
    return syntax.Expect("expect", first.span.to(at.last), select, verdict, prefix, pop, because)


def _edition(at: Cursor, first: Token) -> syntax.Clause:
    edition = at.quantity("an edition")
    return syntax.Edition("edition", first.span.to(at.last), syntax.Name(edition.text, edition.span))


def _inventory(at: Cursor, first: Token) -> syntax.Clause:
    path = at.string("the inventory's path in quotes")
    return syntax.Inventory("inventory", first.span.to(at.last), path)


HEAD_GRAMMAR: Final[dict[str, Grammar]] = {"edition": _edition, "inventory": _inventory}
OVERRIDE_GRAMMAR: Final[dict[str, Grammar]] = {"when": _when, "limit": _limit}
GRAMMARS: Final[dict[str, dict[str, Grammar]]] = {
    "select": {
        "measure": _measure,
        "from": _from,
        "over": _over,
        "rank": _rank,
        "require": _require,
        "exclude": _exclude,
        "hold": _hold,
    },
    "apply": {
        "to": _to,
        "in": _in,
        "set": _set_algorithm,
        "when": _when,
        "fallback": _fallback,
        "limit": _limit,
        "hold_out": _hold_out("prefixes"),
        "active": _active,
    },  # `override` holds a block, so the parser itself reads it
    "learn": {
        "observe": _observe,
        "toward": _toward,
        "in": _in,
        "smooth": _smooth,
        "set": _set_learned,
        "expire": _expire,
        "hold_out": _hold_out("destinations"),
    },
    "initcwnd": {"for": _for, "in": _in, "set": _set_window},
    "guard": {
        "watch": _rule_of,
        "abort": _abort,
        "require": _per_arm,
        "limit": _churn,
        "on_failure": _on_failure,
    },
    "experiment": {"on": _rule_of, "hold_out": _hold_out("hosts"), "switchback": _switchback},
    "test": {"given": _given, "expect": _expect},
}
