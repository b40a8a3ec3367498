r"""An editor's positions and ours.

The protocol counts lines that end at `\n`, `\r\n` or `\r`, and columns in code units of an encoding (Language
Server Protocol 3.17, "Text Documents"). The language counts lines that end at `\n`, and columns in characters.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from tidegate_dsl.diagnostics import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_UNITS: Final[dict[Encoding, Callable[[str], int]]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(character > "\uffff" for character in text),
    "utf-32": len,
}


class Position(NamedTuple):
    """A place as the protocol counts: both from 0, `character` in code units."""

    line: int
    character: int


class Place(NamedTuple):
    """A place as the language counts: both from 1, `column` in characters, between two characters."""

    line: int
    column: int


class Range(NamedTuple):
    """From a position to before another."""

    start: Position
    end: Position


@dataclass(frozen=True)
class Text:
    """A text, and how its editor counts."""

    text: str
    encoding: Encoding = "utf-16"

    @cached_property
    def starts(self) -> list[int]:
        """Where the editor's lines start, in characters of the text."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def own_starts(self) -> list[int]:
        """Where the language's lines start."""
        if "\r" not in self.text.replace("\r\n", ""):
            return self.starts
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def offset(self, position: Position) -> int:
        """Characters before a position; one that is beyond its line or the text is its end, as the protocol says.

        One within a character's units is before that character.
        """
        if position.line >= len(self.starts):
            return len(self.text)
        start = self.starts[position.line]
        line = self._line(position.line)
        if line.isascii():
            return start + min(position.character, len(line))
        units = _UNITS[self.encoding]
        seen = 0
        for index, character in enumerate(line):
            seen += units(character)
            if seen > position.character:
                return start + index
        return start + len(line)

    def position(self, offset: int) -> Position:
        """The position behind this many characters."""
        line = bisect_right(self.starts, offset) - 1
        before = self.text[self.starts[line] : offset]
        return Position(line, len(before) if before.isascii() else _UNITS[self.encoding](before))

    def place(self, position: Position) -> Place:
        """A position as the language counts."""
        offset = self.offset(position)
        line = bisect_right(self.own_starts, offset)
        return Place(line, offset - self.own_starts[line - 1] + 1)

    def at(self, place: Place) -> Position:
        """The position of a place."""
        return self.position(self.own_starts[place.line - 1] + place.column - 1)

    def range(self, span: Span) -> Range:
        """A span as the editor counts."""
        return Range(self.at(Place(span.line, span.column)), self.at(Place(span.line, span.end_column)))

    def replaced(self, start: Position, end: Position, text: str) -> "Text":
        """The text with another in a range; an editor's change."""
        first, last = self.offset(start), self.offset(end)
        return Text(f"{self.text[:first]}{text}{self.text[max(first, last) :]}", self.encoding)

    def line_change(self, new: str) -> tuple[Range, str] | None:
        """The smallest change of whole lines that makes `new` of the text; None where they are the same."""
        if self.text == new:
            return None
        before, after = self.text.splitlines(keepends=True), new.splitlines(keepends=True)
        same = _same(before, after)
        same_end = _same(before[same:][::-1], after[same:][::-1])
        start = sum(map(len, before[:same]))
        end = len(self.text) - sum(map(len, before[len(before) - same_end :]))
        return Range(self.position(start), self.position(end)), "".join(after[same : len(after) - same_end])

    def _line(self, number: int) -> str:
        """A line without its end."""
        last = number + 1 == len(self.starts)
        whole = self.text[self.starts[number] : len(self.text) if last else self.starts[number + 1]]
        return whole if last else whole.rstrip("\r\n")


def _same(some: Sequence[str], others: Sequence[str]) -> int:
    """How many entries are the same from the start."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(some), len(others)))
