"""What may be written at the caret."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tidegate_dsl.diagnostics import Span
from tidegate_dsl.syntax import Kind, Token
from tidegate_dsl.vocabulary import (
    BLOCK_MEANINGS,
    BLOCKS,
    EDITIONS,
    METRICS,
    REASONS,
    WORD_MEANINGS,
    ClauseRule,
    Dimension,
)
from tidegate_dsl.vocabulary import Place as MetricPlace

from . import fleet_words, names
from .document import Document
from .forms import block_snippet, clause_snippet
from .statements import Block, Statement, rules_of
from .text import Place
from .units import conversion, units_of
from .wanted import wanted

ItemKind = Literal["keyword", "clause", "block", "metric", "pop", "group", "name", "value", "unit"]


@dataclass(frozen=True, slots=True)
class Item:
    """One proposal.

    Attributes:
        label: what the list shows, and what is written where there is no snippet.
        kind: what it is.
        span: what it replaces: the word that the caret is in.
        detail: beside the label.
        meaning: the specification's text.
        snippet: what is written instead, with places to fill in.
    """

    label: str
    kind: ItemKind
    span: Span
    detail: str = ""
    meaning: str = ""
    snippet: str | None = None


_NUMBER_AND_UNIT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)")
_METRIC_PLACES: Final[dict[str, MetricPlace]] = {
    "measure": "measure",
    "rank": "measure",
    "from": "where",
    "exclude": "exclude",
    "abort": "abort",
}
_DIMENSIONS: Final[dict[str, Dimension]] = {
    "a duration": "duration",
    "a percentage": "ratio",
    "a size": "size",
    "a number of segments": "segments",
}


@dataclass(frozen=True, slots=True)
class _Caret:
    """What is known at the caret: its block, the clause's words before it, and the word that it is in."""

    document: Document
    block: Block | None
    before: tuple[Token, ...]
    span: Span

    def item(self, label: str, kind: ItemKind, detail: str = "", meaning: str = "") -> Item:
        return Item(label, kind, self.span, detail, meaning)


def complete(document: Document, place: Place) -> list[Item]:
    """All that may stand at a place, in the order of the specification."""
    caret = None if document.in_comment(place) else _caret(document, place)
    if caret is None:
        return []
    return _continuations(caret) if caret.before else _openings(caret)


def _continuations(caret: _Caret) -> list[Item]:
    """What the grammar asks for behind the words that stand; nothing behind a block's keyword: that name is new."""
    found = wanted(caret.block, caret.before)
    if found is None:
        return []
    units = _units(found.unit_of, caret) if found.unit_of else []
    if units:
        return units
    items = [item for thing in found.things for item in _things(thing, caret)]
    items += [
        caret.item(word, "keyword", meaning=WORD_MEANINGS.get(word, ""))
        for word in found.fixed
        if word[0].isalpha()
    ]
    unique = {item.label: item for item in reversed(items)}
    return list(reversed(unique.values()))


def _caret(document: Document, place: Place) -> _Caret | None:
    """The caret; None inside of a string."""
    line = [token for token in document.tokens if token.span.line == place.line and token.text]
    inside = next((t for t in line if t.span.column < place.column <= t.span.end_column), None)
    if (
        inside
        and inside.text.startswith('"')
        and not (inside.kind is Kind.STRING and place.column == inside.span.end_column)
    ):
        return None
    before = _statement_before([token for token in line if token.span.end_column <= place.column])
    start = place.column
    if inside is not None and inside.kind is not Kind.PUNCTUATION:
        start = inside.span.column
        before = tuple(token for token in before if token is not inside)
        number = _NUMBER_AND_UNIT.match(inside.text) if inside.kind is Kind.NUMBER else None
        if number and place.column > start + len(number[1]) - (not number[2]):
            # `100K`: the caret is in the unit of a number that is whole
            before = (*before, inside._replace(text=number[1]))
            start += len(number[1])
    span = Span(place.line, start, place.column)
    return _Caret(document, document.statements.block_at(place), before, span)


def _statement_before(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The tokens behind the last brace."""
    braces = [
        index
        for index, token in enumerate(tokens)
        if token.kind is Kind.PUNCTUATION and token.text in ("{", "}")
    ]
    return tuple(tokens[braces[-1] + 1 if braces else 0 :])


def _openings(caret: _Caret) -> list[Item]:
    """First words: clauses that the block does not have yet, and outside of blocks the blocks themselves."""
    rules = rules_of(caret.block)
    statements = caret.block.statements if caret.block else caret.document.statements.statements
    others = [each for each in statements if each.tokens[0].span.line != caret.span.line]
    present = {_key(each) for each in others if each.block is caret.block}
    items = [
        item
        for rule in rules.values()
        for item in _clauses(rule, caret)
        if rule.repeats or rule.keyword == "override" or _once(item.label.split()) not in present
    ]
    if caret.block is not None:
        return items
    return items + [_block(kind, caret) for kind in BLOCKS]


def _clauses(rule: ClauseRule, caret: _Caret) -> Iterable[Item]:
    for form in rule.forms:
        yield Item(form, "clause", caret.span, "", rule.meaning, clause_snippet(form))


def _block(kind: str, caret: _Caret) -> Item:
    forms = [rule.forms[0] for rule in BLOCKS[kind].values() if rule.required]
    return Item(kind, "block", caret.span, BLOCK_MEANINGS[kind], "", block_snippet(kind, forms))


def _key(statement: Statement) -> str:
    return _once([token.text for token in statement.tokens])


def _once(words: Sequence[str]) -> str:
    """What may stand once: `require windows`, `set initrwnd`, `limit … new prefixes`, or the first word."""
    if words[0] in ("require", "set") and len(words) > 1:
        return f"{words[0]} {words[1]}"
    return "limit new" if words[0] == "limit" and "new" in words[:3] else words[0]


def _things(thing: str, caret: _Caret) -> list[Item]:
    provider = _PROVIDERS.get(thing)
    return provider(caret) if provider else []


def _metrics(caret: _Caret) -> list[Item]:
    place = _METRIC_PLACES[caret.before[0].text]
    fitting = [metric for metric in METRICS.values() if place in metric.places]
    if caret.before[0].text == "rank" and (measured := _measured(caret.block)):
        fitting = [metric for metric in fitting if metric.name == measured]
    return [caret.item(metric.name, "metric", metric.dimension, metric.meaning) for metric in fitting]


def _measured(block: Block | None) -> str | None:
    statements = block.statements if block else []
    return next(
        (each.tokens[1].text for each in statements if each.keyword == "measure" and len(each.tokens) > 1),
        None,
    )


def _pops(caret: _Caret) -> list[Item]:
    fleet = caret.document.fleet
    if fleet is None:
        return []
    return [
        caret.item(pop.name, "pop", ", ".join(pop.groups), fleet_words.describe(fleet, pop.name) or "")
        for pop in fleet.pops
    ]


def _pops_and_groups(caret: _Caret) -> list[Item]:
    fleet = caret.document.fleet
    if fleet is None:
        return []
    wide = ["all", *fleet_words.groups(fleet)]
    said = {token.text for token in caret.before}
    found = [caret.item(word, "group", "", fleet_words.describe(fleet, word) or "") for word in wide]
    return [item for item in found + _pops(caret) if item.label not in said]


def _names(kind: str) -> Callable[[_Caret], list[Item]]:
    return lambda caret: [caret.item(name, "name", kind) for name in names.names(caret.document, kind)]


def _values(values: Iterable[str], detail: str) -> Callable[[_Caret], list[Item]]:
    return lambda caret: [caret.item(value, "value", detail) for value in values]


def _algorithms(caret: _Caret) -> list[Item]:
    allowed = caret.document.limits.algorithms
    return [caret.item(name, "value", "congestion control") for name in allowed.names]


def _prefixes(caret: _Caret) -> list[Item]:
    """The prefixes that the block speaks of already, or the families of `for`."""
    if caret.before[0].text == "for":
        return [caret.item(family, "value", "address family") for family in ("ipv4", "ipv6")]
    said = [
        token.text
        for statement in (caret.block.statements if caret.block else ())
        for token in statement.tokens
        if token.kind is Kind.ADDRESS and token.span.line != caret.span.line
    ]
    return [caret.item(prefix, "value", "prefix of this test") for prefix in dict.fromkeys(said)]


def _reasons(caret: _Caret) -> list[Item]:
    return [caret.item(reason, "value", "requirement") for reason in REASONS]


def _units(thing: str, caret: _Caret) -> list[Item]:
    dimension = _DIMENSIONS.get(thing)
    if thing == "a value with its unit":
        metric = next((METRICS[t.text] for t in reversed(caret.before) if t.text in METRICS), None)
        dimension = metric.dimension if metric else None
    if dimension is None:
        return []
    return [caret.item(unit.name, "unit", conversion(unit)) for unit in units_of(dimension)]


# By the grammar's own words for what must stand in a place.
_PROVIDERS: Final[dict[str, Callable[[_Caret], list[Item]]]] = {
    "a metric": _metrics,
    "`bottom`, `top` or a metric": _metrics,
    "a POP": _pops,
    "a POP or group": _pops_and_groups,
    "the name of a select": _names("select"),
    "the name of an apply": _names("apply"),
    "a congestion control algorithm": _algorithms,
    "a prefix such as `192.0.2.0/24`": _prefixes,
    "a reason": _reasons,
    "a percentile such as `p10`": _values(("p10", "p25", "p50", "p75", "p90"), "percentile"),
    "an edition": _values(EDITIONS, "edition"),
}
