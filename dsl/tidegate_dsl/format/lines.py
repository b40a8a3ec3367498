"""Which lines a formatted policy has: what stands on each, how deep, and where one blank line stands above."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tidegate_dsl.syntax import Comment, Kind, Lexed, Token
from tidegate_dsl.vocabulary import BLOCKS


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it will be written.

    Attributes:
        tokens: a clause, a block's header, its `}`, or a whole block that stays on its line; none where a comment
            stands alone.
        comment: what stands behind the tokens, or alone.
        gap: columns that the author left between the code and the comment behind it.
        apart: a blank line stands above.
        block: the number of the block that it stands in, counted from 1; 0 outside of blocks.
        depth: how many blocks are open around it.
    """

    tokens: tuple[Token, ...]
    comment: Comment | None = None
    gap: int = 0
    apart: bool = False
    block: int = 0
    depth: int = 0

    @property
    def closes(self) -> bool:
        """Whether it is the `}` of a block that takes several lines."""
        return bool(self.tokens) and self.tokens[0].text == "}"

    @property
    def opens(self) -> bool:
        """Whether a block begins with it that takes several lines."""
        return bool(self.tokens) and self.tokens[-1].text == "{"


def arrange(lexed: Lexed) -> list[Line]:
    """The lines of a policy whose grammar is right."""
    return _apart(_nested(_lines(lexed)))


def _lines(lexed: Lexed) -> list[Line]:
    """The lines in their order, not yet nested; a line of the file that says several things becomes several.

    A comment behind these stays with the last that is no `}`; one alone above them with the first.
    """
    comments = {comment.span.line: comment for comment in lexed.comments}
    lines: list[Line] = []
    apart = False
    for number, group in groupby(lexed.tokens, key=lambda token: token.span.line):
        tokens = [token for token in group if token.kind not in (Kind.NEWLINE, Kind.END)]
        comment = comments.get(number)
        if not tokens and comment is None:
            apart = True
            continue
        if not tokens:
            lines.append(Line((), comment, apart=apart))
        else:
            made = [Line(piece) for piece in _pieces(tokens)]
            said = [index for index, line in enumerate(made) if not line.closes]
            if comment is not None:
                last = said[-1] if said else -1
                gap = comment.span.column - tokens[-1].span.end_column
                made[last] = replace(made[last], comment=comment, gap=gap)
            made[0] = replace(made[0], apart=apart)
            if said and said[0] > 0 and not apart:
                made[said[0] : said[0]] = _taken_above(lines)
            lines += made
        apart = False
    return lines


def _taken_above(lines: list[Line]) -> list[Line]:
    """The comments that end `lines` with no blank line in or below them, taken out of it."""
    taken: list[Line] = []
    while lines and not lines[-1].tokens and not (taken and taken[0].apart):
        taken.insert(0, lines.pop())
    return taken


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """What a line of the file says, cut where a line of its own begins."""
    start = 0
    while start < len(tokens):
        end = next((i for i in range(start, len(tokens)) if tokens[i].text in ("{", "}")), len(tokens))
        if end < len(tokens) and tokens[end].text == "{":
            end = _end_of_short_block(tokens, end) or end + 1
        elif end == start:
            end += 1
        yield tuple(tokens[start:end])
        start = end


def _end_of_short_block(tokens: Sequence[Token], brace: int) -> int | None:
    """The index behind the block that opens at `brace`, if it closes on this line and holds just one clause."""
    end = next((i for i in range(brace + 1, len(tokens)) if tokens[i].text in ("{", "}")), None)
    if end is not None and tokens[end].text == "{":
        end = _end_of_short_block(tokens, end)
    if end is None or end == brace + 1 or end == len(tokens) or tokens[end].text != "}":
        return None
    return end + 1


def _nested(lines: list[Line]) -> Iterator[Line]:
    """The lines, each with its block and depth."""
    around = [0]
    blocks = 0
    for line in lines:
        if line.closes:
            around.pop()
        yield replace(line, block=around[-1], depth=len(around) - 1)
        if line.opens:
            blocks += 1
            around.append(blocks)


def _apart(nested: Iterator[Line]) -> list[Line]:
    """The lines, with an empty one between two where the author left one or a block begins.

    There is none at the beginning or end of a block or of the file.
    """
    lines = list(nested)
    begins = {
        _with_comments_above(lines, index)
        for index, line in enumerate(lines)
        if line.depth == 0 and line.tokens and line.tokens[0].text in BLOCKS
    }
    for index, line in enumerate(lines):
        wanted = line.apart or index in begins
        lines[index] = replace(
            line, apart=wanted and index > 0 and not lines[index - 1].opens and not line.closes
        )
    return lines


def _with_comments_above(lines: list[Line], index: int) -> int:
    """The index of the first of the comments directly above a line, which belong to it, or its own."""
    while index and not lines[index].apart and not lines[index - 1].tokens:
        index -= 1
    return index
