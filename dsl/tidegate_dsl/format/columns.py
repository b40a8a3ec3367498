"""What a formatted policy's lines look like: blanks between tokens, the columns of arguments and of comments."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from tidegate_dsl.syntax import NUMBER, Kind, Token
from tidegate_dsl.vocabulary import TOUCHING, UNITS

from .lines import Line

_INDENT: Final = "  "
_ARGUMENTS: Final = 9  # the first column of a clause's arguments, unless a longer keyword pushes it out
_GAP: Final = 2  # the least distance between code and a comment behind it


def write(lines: Sequence[Line]) -> str:
    """The text of the lines, each closed by a line feed."""
    rows = [f"{_INDENT * line.depth}{code}" for line, code in zip(lines, _codes(lines), strict=True)]
    for start, end in _runs(lines):
        gap = max(_GAP, min(line.gap for line in lines[start:end]))
        column = max(map(len, rows[start:end])) + gap
        rows[start:end] = [row.ljust(column) for row in rows[start:end]]
    return "".join(
        ("\n" if line.apart else "") + row + (line.comment.text if line.comment else "") + "\n"
        for line, row in zip(lines, rows, strict=True)
    )


def _runs(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Start and end of each run of lines whose comments stand in one column: adjacent and of one block."""
    start = 0
    for index, line in enumerate(lines):
        behind = bool(line.tokens) and line.comment is not None
        if start < index and not (behind and _adjacent(lines[index - 1], line)):
            yield start, index
            start = index
        if not behind:
            start = index + 1
    if start < len(lines):
        yield start, len(lines)


def _adjacent(above: Line, line: Line) -> bool:
    return above.block == line.block and not above.opens and not line.apart


def _codes(lines: Sequence[Line]) -> Iterator[str]:
    """Each line's tokens as text; in a block the arguments of all clauses start in one column."""
    columns: defaultdict[int, int] = defaultdict(lambda: _ARGUMENTS)
    for line in lines:
        if line.tokens:
            columns[line.block] = max(columns[line.block], len(line.tokens[0].text) + 1)
    for line in lines:
        if line.depth and len(line.tokens) > 1:
            yield f"{line.tokens[0].text.ljust(columns[line.block])}{_spaced(line.tokens[1:])}"
        else:
            yield _spaced(line.tokens)


def _spaced(tokens: Sequence[Token]) -> str:
    """Tokens of a line with the blanks that stand between them."""
    text = ""
    before: Token | None = None
    for token in tokens:
        if before is not None and not _touch(before, token):
            text += " "
        text += _number(token) if token.kind is Kind.NUMBER else token.text
        before = token
    return text


def _touch(before: Token, token: Token) -> bool:
    if token.text in (",", "%"):
        return True
    return before.kind is Kind.NUMBER and before.text[-1].isdigit() and token.text in TOUCHING


def _number(token: Token) -> str:
    """A number, and behind a blank the unit that touches it; what is no unit stays where it is."""
    match = NUMBER.fullmatch(token.text)
    unit = match[3] if match else None
    if unit in UNITS and unit not in TOUCHING:
        return f"{token.text.removesuffix(unit)} {unit}"
    return token.text
