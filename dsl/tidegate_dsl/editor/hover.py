"""What the specification says of the word under the pointer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidegate_dsl.diagnostics import Span
from tidegate_dsl.syntax import NUMBER, Kind, Quantity, Token
from tidegate_dsl.vocabulary import BLOCK_MEANINGS, BLOCKS, METRICS, UNITS, WORD_MEANINGS, ClauseRule, Metric

from . import fleet_words, names, units
from .document import Document
from .statements import Statement, rules_of
from .text import Place


@dataclass(frozen=True, slots=True)
class Hover:
    """A text in Markdown about a span."""

    text: str
    span: Span


def hover(document: Document, place: Place) -> Hover | None:
    """What is known of the word at a place; None where nothing is."""
    statement = document.statements.statement_at(place)
    token = document.token_at(place)
    if statement is None or token is None or token not in statement.tokens:
        return None
    for describe in _DESCRIPTIONS:
        text = describe(document, statement, token)
        if text:
            return Hover(text, token.span)
    return None


def _name(document: Document, statement: Statement, token: Token) -> str | None:
    """A select, an apply: its clauses as they stand."""
    found = names.occurrence_at(document, Place(token.span.line, token.span.column))
    if found is None or statement.tokens[0] is token or found.kind == "test":
        return None
    block = next(
        (
            block
            for block in document.statements.blocks
            if block.kind == found.kind and block.name is not None and block.name.text == found.name
        ),
        None,
    )
    if block is None:
        return None
    inside = [each for each in document.statements.statements if each.block is block]
    clauses = [document.source.words(each.tokens[0].span.to(each.tokens[-1].span)) for each in inside]
    return _code(f"{found.kind} {found.name}", *(f"  {clause}" for clause in clauses))


def _keyword(document: Document, statement: Statement, token: Token) -> str | None:  # noqa: ARG001 - one row of a table
    if statement.tokens[0] is not token:
        return None
    if statement.block is None and token.text in BLOCKS:
        return f"**{token.text}**: {BLOCK_MEANINGS[token.text]}"
    rule = rules_of(statement.block).get(token.text)
    return _rule(rule) if rule else None


def _rule(rule: ClauseRule) -> str:
    often = "any number of times" if rule.repeats else "required" if rule.required else "optional"
    return f"{_code(*rule.forms)}\n\n{rule.meaning} ({often})"


def _pop(document: Document, statement: Statement, token: Token) -> str | None:
    """A POP or group, where one may stand."""
    if document.fleet is None or token.kind is not Kind.WORD:
        return None
    before = statement.tokens[statement.tokens.index(token) - 1].text
    if statement.keyword in ("in", "override") or before == "in":
        return fleet_words.describe(document.fleet, token.text)
    return None


def _metric(document: Document, statement: Statement, token: Token) -> str | None:  # noqa: ARG001
    metric = METRICS.get(token.text)
    return _of_metric(metric) if metric else None


def _of_metric(metric: Metric) -> str:
    unit = ", ".join(f"`{each.name}`" for each in units.units_of(metric.dimension))
    kind = f"{metric.dimension} ({unit})" if unit else metric.dimension
    return f"**{metric.name}**: {metric.meaning}\n\n{kind}; in {', '.join(f'`{p}`' for p in metric.places)}"


def _number(document: Document, statement: Statement, token: Token) -> str | None:  # noqa: ARG001
    """A number or its unit: the value in base units."""
    index = statement.tokens.index(token)
    if token.kind is not Kind.NUMBER and index:
        index -= 1
    number = NUMBER.fullmatch(statement.tokens[index].text)
    if number is None:
        return None
    whole, fraction, unit = number.groups(default="")
    if not unit and index + 1 < len(statement.tokens):
        unit = statement.tokens[index + 1].text
    if unit not in UNITS:
        return None
    shown = f"{number[0]}%" if unit == "%" else number[0] if number[3] else f"{number[0]} {unit}"
    span = statement.tokens[index].span
    value = units.value(Quantity(int(whole + fraction), len(fraction), unit, shown, span))
    return "\n\n".join(each for each in (value, units.conversion(UNITS[unit])) if each)


def _word(document: Document, statement: Statement, token: Token) -> str | None:  # noqa: ARG001 - as all of _DESCRIPTIONS
    meaning = WORD_MEANINGS.get(token.text) if statement.block else None
    return f"**{token.text}**: {meaning}" if meaning else None


def _code(*lines: str) -> str:
    return "\n".join(["```tide", *lines, "```"])


# The first that knows the word answers: a POP may be called like a metric.
_DESCRIPTIONS: Final[tuple[Callable[[Document, Statement, Token], str | None], ...]] = (
    _keyword,
    _name,
    _pop,
    _metric,
    _number,
    _word,
)
