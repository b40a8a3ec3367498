"""A policy's text cut before each line that opens a block: a keystroke changes one piece, and the others are kept."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from tidegate_dsl.vocabulary import BLOCKS

from .lexer import Lexed
from .tree import Block

_OPENS: Final = re.compile(rf"^[ \t]*(?:{'|'.join(BLOCKS)})(?![^\s{{}},%<>=!\"#])", re.MULTILINE)


class Piece(NamedTuple):
    """Lines from one that opens a block to before the next; the first piece is what stands before all of them.

    `above` is how many lines of the file stand above it; its text is without the end of its last line.
    """

    above: int
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A piece that is one block, closed and without a mistake: the same block wherever it stands.

    Lines count from the piece's first one.
    """

    lexed: Lexed
    block: Block

    def at(self, above: int) -> Block:
        """The block below so many lines."""
        block = self.block
        return Block(block.kind, block.name, block.span, block.body, above)


def cut(text: str) -> list[Piece]:
    """The pieces of a text, in their order."""
    starts = [match.start() for match in _OPENS.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    # A line's end parts two pieces and is in neither; the last piece has none behind it.
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    above = 0
    pieces: list[Piece] = []
    for start, end in zip(starts, ends, strict=True):
        piece = text[start:end]
        pieces.append(Piece(above, piece))
        above += piece.count("\n") + 1
    return pieces
