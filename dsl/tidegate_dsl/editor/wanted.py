"""What may stand next in a clause, asked of the grammar that the parser uses."""

from collections.abc import Collection, Sequence
from typing import Final

from tidegate_dsl.diagnostics import Findings, Fix, Span
from tidegate_dsl.syntax import (
    GRAMMARS,
    HEAD_GRAMMAR,
    OVERRIDE_GRAMMAR,
    Cursor,
    GiveUp,
    Grammar,
    Kind,
    Quantity,
    Token,
)

from .statements import OVERRIDE_BLOCK, Block, rules_of

_NOWHERE: Final = Span(1, 1, 1)
_END: Final = Token(Kind.END, "", _NOWHERE)


class Wanted(Cursor):
    """A cursor over the words before the caret that notes what the grammar asks for where they end.

    Attributes:
        fixed: words and punctuation that may stand there.
        things: what else may, in the grammar's own words: `a metric`, `a duration`.
        unit_of: the thing whose number stands before the caret without its unit.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__([*tokens, _END], Findings(""))
        self.fixed: list[str] = []
        self.things: list[str] = []
        self.unit_of: str | None = None

    @property
    def _here(self) -> bool:
        return self.token.kind is Kind.END

    @property
    def at_end(self) -> bool:
        """Never: whether the clause ends here is what the caret decides."""
        return not self._here and super().at_end

    def is_word(self, *texts: str) -> bool:
        """As `Cursor.is_word`."""
        self._note(texts)
        return super().is_word(*texts)

    def is_punctuation(self, text: str) -> bool:
        """As `Cursor.is_punctuation`."""
        self._note((text,))
        return super().is_punctuation(text)

    def comparison(self, *allowed: str) -> str:
        """As `Cursor.comparison`."""
        self._note(allowed)
        return super().comparison(*allowed)

    def fail(self, expected: str, *, way_out: str | None = None, fix: Fix | None = None) -> GiveUp:
        """As `Cursor.fail`; at the caret `expected` is a thing that is wanted."""
        if self._here:
            self.things.append(expected)
        return super().fail(expected, way_out=way_out, fix=fix)

    def quantity(self, what: str, *, before: Collection[str] = ()) -> Quantity:
        """As `Cursor.quantity`; behind a number its unit is wanted too."""
        quantity = super().quantity(what, before=before)
        if self._here and quantity.unit is None:
            self.unit_of = what
        return quantity

    def _note(self, words: Collection[str]) -> None:
        if self._here:
            self.fixed += [word for word in words if word not in self.fixed]


def wanted(block: Block | None, tokens: Sequence[Token]) -> Wanted | None:
    """What may stand behind the first tokens of a clause; None where no clause starts so.

    Args:
        block: what the clause stands in.
        tokens: the clause up to the caret, its keyword first.
    """
    grammar = _grammars(block).get(tokens[0].text)
    at = Wanted(tokens)
    first = at.take()
    rule = rules_of(block).get(first.text)
    if rule is None:
        return None
    at.forms = rule.forms
    try:
        if grammar is None:  # `override`: the parser itself reads it
            at.name("a POP")
        else:
            grammar(at, first)
    except GiveUp:
        pass
    return at


def _grammars(block: Block | None) -> dict[str, Grammar]:
    if block is None:
        return HEAD_GRAMMAR
    return OVERRIDE_GRAMMAR if block.kind == OVERRIDE_BLOCK else GRAMMARS[block.kind]
