"""The grammar of `learn` and `initcwnd`."""

from typing import Final

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Kind, Token
from tidegate_dsl.vocabulary import DIRECTIONS, FAMILIES, WINDOWS

from .shared import Grammar, hold_out, in_pops


def _observe(at: Cursor, first: Token) -> tree.Clause:
    at.words("cwnd", "by", "destination")
    return tree.Phrase("observe", first.span.to(at.last))


def _toward(at: Cursor, first: Token) -> tree.Clause:
    directions = [at.choice(DIRECTIONS, "a direction")]
    while at.is_punctuation(","):
        at.take()
        directions.append(at.choice(DIRECTIONS, "a direction"))
    return tree.Toward("toward", first.span.to(at.last), tuple(directions))


def _smooth(at: Cursor, first: Token) -> tree.Clause:
    weight = at.quantity("a weight above 0 and up to 1", before=("every",))
    at.words("every")
    every = at.quantity("a duration")
    return tree.Smooth("smooth", first.span.to(at.last), weight, every)


def _set_learned(at: Cursor, first: Token) -> tree.Clause:
    window = at.choice(WINDOWS, "a window").text
    at.forms = tuple(form for form in at.forms if window in form)
    if window == "initrwnd":
        segments = at.quantity("a number of segments")
        return tree.SetWindow(f"set {window}", first.span.to(at.last), segments)
    at.words("between")
    low = at.quantity("a number of segments", before=("and",))
    at.words("and")
    high = at.quantity("a number of segments")
    return tree.SetInitcwnd(f"set {window}", first.span.to(at.last), low, high)


def _expire(at: Cursor, first: Token) -> tree.Clause:
    duration = at.quantity("a duration")
    return tree.Expire("expire", first.span.to(at.last), duration)


def _for(at: Cursor, first: Token) -> tree.Clause:
    targets = [_target(at)]
    while at.is_punctuation(","):
        at.take()
        targets.append(_target(at))
    return tree.For("for", first.span.to(at.last), tuple(targets))


def _target(at: Cursor) -> tree.Name:
    if at.token.kind is Kind.WORD:
        return at.choice(FAMILIES, "`ipv4`, `ipv6` or a prefix", what="write a prefix or one of")
    return at.prefix()


def _set_window(at: Cursor, first: Token) -> tree.Clause:
    at.words("initcwnd")
    segments = at.quantity("a number of segments")
    return tree.SetWindow("set", first.span.to(at.last), segments)


LEARN: Final[dict[str, Grammar]] = {
    "observe": _observe,
    "toward": _toward,
    "in": in_pops,
    "smooth": _smooth,
    "set": _set_learned,
    "expire": _expire,
    "hold_out": hold_out("destinations"),
}
INITCWND: Final[dict[str, Grammar]] = {"for": _for, "in": in_pops, "set": _set_window}
