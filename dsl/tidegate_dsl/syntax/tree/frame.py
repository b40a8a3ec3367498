"""Files, blocks, and what clauses are made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from tidegate_dsl.diagnostics import Span
from tidegate_dsl.syntax.lexer import Comment

C = TypeVar("C", bound="Clause")


@dataclass(frozen=True, slots=True)
class Name:
    """A word, or a string's text without its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as `mantissa / 10**scale`, so that it is exact, and the unit as written, if any."""

    mantissa: int
    scale: int
    unit: str | None
    text: str
    span: Span

    def times(self, factor: int) -> int | None:
        """The number times `factor`; None where that is no whole number."""
        denominator: int = 10**self.scale
        value, rest = divmod(self.mantissa * factor, denominator)
        return None if rest else value


@dataclass(frozen=True, slots=True)
class Test:
    """One condition: a metric compared with a value, or a flag (`comparison` and `value` are None)."""

    metric: Name
    comparison: str | None
    value: Quantity | None
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Clause:
    """What every clause has: `key` is what may stand once in a block, such as `require windows`."""

    key: str
    span: Span


@dataclass(frozen=True, slots=True)
class Phrase(Clause):
    """A clause whose words are all fixed: `fallback ungated`, `observe cwnd by destination`."""


@dataclass(frozen=True, slots=True)
class Edition(Clause):
    """`edition 2026.1`."""

    edition: Name


@dataclass(frozen=True, slots=True)
class Inventory(Clause):
    """`inventory "PATH"`."""

    path: Name


@dataclass(frozen=True, slots=True)
class Body:
    """What stands between braces.

    `broken` holds the first words of clauses that were reported; "" stands for a clause of which not even
    the first word is known. Whatever they might have said is not reported as missing.
    """

    clauses: tuple[Clause, ...]
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class Block:
    """`select NAME { … }` and its like.

    Attributes:
        kind: its first word.
        name: its name.
        span: the header up to the name.
        body: what stands between its braces.
        above: how many lines of the file stand above it: every span in it counts lines from there. So a block that
            moves is the same but for this number.
    """

    kind: str
    name: Name
    span: Span
    body: Body
    above: int = 0


@dataclass(frozen=True, slots=True)
class File:
    """A whole policy file.

    `head` are the clauses outside of blocks; `skipped` the names of blocks that were reported and left out, so
    that whoever refers to one is not reported again.
    """

    head: Body
    blocks: tuple[Block, ...]
    skipped: frozenset[str]
    comments: tuple[Comment, ...]


def find(clauses: Iterable[Clause], kind: type[C]) -> C | None:
    """The first clause of a kind."""
    for clause in clauses:
        if isinstance(clause, kind):
            return clause
    return None
