"""The grammar of `test`."""

from typing import Final

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Token
from tidegate_dsl.vocabulary import VERDICTS

from .shared import Grammar


def _given(at: Cursor, first: Token) -> tree.Clause:
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
    return tree.Given("given", first.span.to(at.last), prefix, pop, membership, selected)


def _given_telemetry(at: Cursor, first: Token) -> tree.Clause:
    at.take()
    path, until = at.string("the telemetry's path in quotes"), None
    if at.is_word("until"):
        at.take()
        until = at.time()
    return tree.GivenTelemetry("given", first.span.to(at.last), path, until)


def _expect(at: Cursor, first: Token) -> tree.Clause:
    select = at.name("the name of a select")
    verdict = at.choice(VERDICTS, "a verdict")
    prefix = at.prefix()
    pop = because = None
    if at.is_word("in"):
        at.take()
        pop = at.name("a POP")
    if at.is_word("because"):
        at.take()
        because = at.name("a reason")
    return tree.Expect("expect", first.span.to(at.last), select, verdict, prefix, pop, because)


TEST: Final[dict[str, Grammar]] = {"given": _given, "expect": _expect}
