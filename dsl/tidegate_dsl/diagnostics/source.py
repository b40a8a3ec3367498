"""A policy file's text, and places in it."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import BinaryIO, Final, NamedTuple

from .errors import InputError

_MAX_BYTES: Final = 4 * 1024 * 1024


class Span(NamedTuple):
    """A piece of one line. A tuple, because a large file has tens of thousands.

    `line` and columns count from 1, columns in characters; the end is exclusive. A span that takes the line's end
    with it ends two behind the line's last column. Bytes are `Source.extent`'s: a keystroke moves those of every
    line below it.
    """

    line: int
    column: int
    end_column: int

    def to(self, last: "Span") -> "Span":
        """From the start of this span to the end of `last`, which stands on the same line."""
        return Span(self.line, self.column, last.end_column)

    def below(self, lines: int) -> "Span":
        """The same columns, so many lines further down."""
        return Span(self.line + lines, self.column, self.end_column)

    @property
    def start(self) -> "Span":
        """The empty span before it."""
        return self._replace(end_column=self.column)

    @property
    def end(self) -> "Span":
        """The empty span behind it."""
        return self._replace(column=self.end_column)


def utf8(text: str) -> bytes:
    """The bytes of `text`; a lone surrogate, which only a caller in Python can make, keeps its three bytes."""
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Source:
    """A policy's text and the path to call it by, as the user gave it."""

    path: str
    text: str

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8."""
        return utf8(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends; only a line feed ends a line."""
        return self.text.split("\n")

    def slice(self, span: Span) -> str:
        """The text of a span."""
        return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]

    @cached_property
    def _line_starts(self) -> list[int]:
        """The byte that each line starts at."""
        return [0, *accumulate(len(utf8(line)) + 1 for line in self.lines)]

    def extent(self, span: Span) -> tuple[int, int]:
        """The bytes of a span, from 0, the end exclusive."""
        line, start = self.lines[span.line - 1], self._line_starts[span.line - 1]
        if line.isascii():
            return start + span.column - 1, start + span.end_column - 1
        line += "\n"
        return start + len(utf8(line[: span.column - 1])), start + len(utf8(line[: span.end_column - 1]))

    def end_place(self, span: Span) -> tuple[int, int]:
        """Line and column of a span's end; behind a line's feed is the start of the next line."""
        beyond = span.end_column > len(self.lines[span.line - 1]) + 1
        return (span.line + 1, 1) if beyond else (span.line, span.end_column)

    def words(self, span: Span) -> str:
        """The text of a span with every run of blanks as one space."""
        return " ".join(self.slice(span).split())


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text from one of its lines on: what is read of it counts lines from there, and stays when the piece moves.

    Attributes:
        source: the text.
        above: how many of its lines stand above.
    """

    source: Source
    above: int = 0

    def line_number(self, span: Span) -> int:
        """The line of a span, counted from the start of the text."""
        return self.above + span.line

    def slice(self, span: Span) -> str:
        """The text of a span."""
        return self.source.slice(span.below(self.above))

    def words(self, span: Span) -> str:
        """The text of a span with every run of blanks as one space."""
        return self.source.words(span.below(self.above))

    def line(self, span: Span) -> str:
        """The line that a span is on."""
        return self.source.lines[self.above + span.line - 1]

    def is_last(self, span: Span) -> bool:
        """Whether no line stands below a span."""
        return self.above + span.line == len(self.source.lines)


def read_text(file: BinaryIO, path: str) -> str:
    """The text of an open policy file.

    Args:
        file: what is read to its end.
        path: what messages call it.

    Raises:
        InputError: it is larger than a policy can be, or no UTF-8 text.
        OSError: the system does not give it.
    """
    data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise InputError(f"{path} is larger than a policy can be: {_MAX_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: the file is not UTF-8 text: byte 0x{data[error.start]:02x}"
        ) from error
