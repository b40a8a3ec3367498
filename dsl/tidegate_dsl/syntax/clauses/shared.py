"""Clauses of several blocks, and what the grammar of a clause is."""

from collections.abc import Callable

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Token

Grammar = Callable[[Cursor, Token], tree.Clause]


def in_pops(at: Cursor, first: Token) -> tree.Clause:
    """`in POP, GROUP [except POP, …]`."""
    included = _pops(at)
    excepted: tuple[tree.Name, ...] = ()
    if at.is_word("except"):
        at.take()
        excepted = _pops(at)
    return tree.In("in", first.span.to(at.last), included, excepted)


def _pops(at: Cursor) -> tuple[tree.Name, ...]:
    names = [_pop(at)]
    while at.is_punctuation(","):
        at.take()
        names.append(_pop(at))
    return tuple(names)


def _pop(at: Cursor) -> tree.Name:
    if at.token.text == "except":  # not `is_word`, which would propose it in an editor
        raise at.fail("a POP or group")
    return at.name("a POP or group")


def hold_out(of: str) -> Grammar:
    """The grammar of `hold_out N% of …`."""

    def grammar(at: Cursor, first: Token) -> tree.Clause:
        share = at.quantity("a percentage", before=("of",))
        at.words("of", of)
        return tree.HoldOut("hold_out", first.span.to(at.last), share)

    return grammar
