"""The grammar of every clause: one function each, called behind its first word."""

from collections.abc import Callable
from typing import Final

from . import syntax
from .cursor import Cursor
from .lexer import Token
from .vocabulary import REASONS, REQUIREMENTS, TRAFFIC_CLASSES, VERDICTS

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
    at.words("bottom")
    share = at.quantity("a percentage", before=("of",))
    at.words("of", "pop")
    return syntax.RankBottom("rank", first.span.to(at.last), share)


def _require(at: Cursor, first: Token) -> syntax.Clause:
    subject = at.choice(REQUIREMENTS, "a requirement")
    at.forms = tuple(form for form in at.forms if subject.text in form)
    at.comparison(REQUIREMENTS[subject.text])
    share = subject.text in ("duty_cycle", "flap_rate")
    value = at.quantity("a percentage") if share else at.count("a count")
    if subject.text == "samples":
        at.words("per", "window")
    return syntax.Require(f"require {subject.text}", first.span.to(at.last), subject, value)


def _exclude(at: Cursor, first: Token) -> syntax.Clause:
    test = at.test()
    return syntax.Exclude("exclude", first.span.to(at.last), test)


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
    names = [at.name("a POP or group")]
    while at.is_punctuation(","):
        at.take()
        names.append(at.name("a POP or group"))
    return tuple(names)


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
    new = at.is_word("new")
    at.words(*(("new", "prefixes", "per", "run") if new else ("prefixes", "per", "pop")))
    return syntax.Limit("limit … new" if new else "limit", first.span.to(at.last), count, new)


def _hold_out(at: Cursor, first: Token) -> syntax.Clause:
    share = at.quantity("a percentage", before=("of",))
    at.words("of", "prefixes")
    return syntax.HoldOut("hold_out", first.span.to(at.last), share)


def _observe(at: Cursor, first: Token) -> syntax.Clause:
    at.words("cwnd", "by", "destination")
    return syntax.Phrase("observe", first.span.to(at.last))


def _toward(at: Cursor, first: Token) -> syntax.Clause:
    at.words("peer_pops")
    return syntax.Phrase("toward", first.span.to(at.last))


def _smooth(at: Cursor, first: Token) -> syntax.Clause:
    weight = at.quantity("a weight above 0 and up to 1", before=("every",))
    at.words("every")
    every = at.quantity("a duration")
    return syntax.Smooth("smooth", first.span.to(at.last), weight, every)


def _set_initcwnd(at: Cursor, first: Token) -> syntax.Clause:
    at.words("initcwnd", "between")
    low = at.quantity("a number of segments", before=("and",))
    at.words("and")
    high = at.quantity("a number of segments")
    return syntax.SetInitcwnd("set", first.span.to(at.last), low, high)


def _expire(at: Cursor, first: Token) -> syntax.Clause:
    duration = at.quantity("a duration")
    return syntax.Expire("expire", first.span.to(at.last), duration)


def _given(at: Cursor, first: Token) -> syntax.Clause:
    prefix = at.prefix()
    at.words("in")
    pop = at.name("a POP")
    at.words("membership")
    membership = at.string('a membership string such as `"1010..."`')
    return syntax.Given("given", first.span.to(at.last), prefix, pop, membership)


def _expect(at: Cursor, first: Token) -> syntax.Clause:
    select = at.name("the name of a select")
    verdict = at.choice(VERDICTS, "`includes` or `excludes`")
    prefix = at.prefix()
    because = None
    if at.is_word("because"):
        at.take()
        because = at.choice(REASONS, "a reason")
    return syntax.Expect("expect", first.span.to(at.last), select, verdict, prefix, because)


def _edition(at: Cursor, first: Token) -> syntax.Clause:
    edition = at.quantity("an edition")
    return syntax.Edition("edition", first.span.to(at.last), syntax.Name(edition.text, edition.span))


def _inventory(at: Cursor, first: Token) -> syntax.Clause:
    path = at.string("the inventory's path in quotes")
    return syntax.Inventory("inventory", first.span.to(at.last), path)


HEAD_GRAMMAR: Final[dict[str, Grammar]] = {"edition": _edition, "inventory": _inventory}
OVERRIDE_GRAMMAR: Final[dict[str, Grammar]] = {"when": _when}
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
        "hold_out": _hold_out,
    },  # `override` holds a block, so the parser itself reads it
    "learn": {
        "observe": _observe,
        "toward": _toward,
        "in": _in,
        "smooth": _smooth,
        "set": _set_initcwnd,
        "expire": _expire,
    },
    "test": {"given": _given, "expect": _expect},
}
