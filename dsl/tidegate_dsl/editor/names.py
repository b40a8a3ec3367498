"""Names of blocks: where they are defined and used, and how to change them."""

from dataclasses import dataclass
from typing import Final, Literal

from tidegate_dsl.diagnostics import Span
from tidegate_dsl.syntax import Kind, Token
from tidegate_dsl.vocabulary import BLOCKS, NAME, NAME_IN_WORDS

from .document import Document
from .statements import Statement
from .text import Place

# Which clause's second word names a block, and of which kind.
USES: Final = {
    ("apply", "to"): "select",
    ("test", "expect"): "select",
    ("guard", "watch"): "apply",
    ("experiment", "on"): "apply",
}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place that names a block; `role` tells a definition from a use."""

    kind: str
    name: str
    span: Span
    role: Literal["definition", "use"]


class Refused(Exception):
    """A rename that would break the policy; the message says why."""


def occurrences(document: Document) -> list[Occurrence]:
    """Every place in the file that names a block, in order."""
    return [
        found for statement in document.statements.statements if (found := _occurrence(statement)) is not None
    ]


def occurrence_at(document: Document, place: Place) -> Occurrence | None:
    """The name at a place."""
    token = document.token_at(place)
    return next((each for each in occurrences(document) if token and _within(each.span, token)), None)


def definitions(document: Document, kind: str, name: str) -> list[Occurrence]:
    """Where a name is defined."""
    return [each for each in same(document, kind, name) if each.role == "definition"]


def same(document: Document, kind: str, name: str) -> list[Occurrence]:
    """Every occurrence of a name."""
    return [each for each in occurrences(document) if (each.kind, each.name) == (kind, name)]


def names(document: Document, kind: str) -> list[str]:
    """The names of all blocks of a kind, in order."""
    return list(
        dict.fromkeys(
            each.name for each in occurrences(document) if each.kind == kind and each.role == "definition"
        )
    )


def rename(document: Document, place: Place, new: str) -> list[Span]:
    """The spans to replace by `new`.

    Raises:
        Refused: no name stands here, or `new` is none, or is taken.
    """
    found = occurrence_at(document, place)
    if found is None:
        raise Refused("only the name of a block can be changed here")
    if found.kind == "test":
        if '"' in new or "\n" in new or "\r" in new:
            raise Refused("a test's name has no `\"` and stands on one line")
    elif not NAME.fullmatch(new):
        raise Refused(f"`{new}` is no name: {NAME_IN_WORDS}")
    if new != found.name and new in names(document, found.kind):
        raise Refused(f"another {found.kind} is called `{new}`")
    return [each.span for each in same(document, found.kind, found.name)]


def _occurrence(statement: Statement) -> Occurrence | None:
    if len(statement.tokens) < 2:
        return None
    keyword, token = statement.tokens[0].text, statement.tokens[1]
    if statement.block is None and keyword in BLOCKS:
        if keyword == "test":
            return _of_string(token) if token.kind is Kind.STRING else None
        return Occurrence(keyword, token.text, token.span, "definition") if token.kind is Kind.WORD else None
    kind = USES.get((statement.block.kind, keyword)) if statement.block else None
    return Occurrence(kind, token.text, token.span, "use") if kind and token.kind is Kind.WORD else None


def _of_string(token: Token) -> Occurrence:
    """A test's name: the text between its quotes."""
    inside = Span(token.span.line, token.span.column + 1, token.span.end_column - 1)
    return Occurrence("test", token.text[1:-1], inside, "definition")


def _within(span: Span, token: Token) -> bool:
    return token.span.start <= span.start and span.end <= token.span.end
