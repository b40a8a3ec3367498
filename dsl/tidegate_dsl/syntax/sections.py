"""A policy's text cut before each line that opens a block: a keystroke changes one piece, and the others are kept."""

import re
from dataclasses import dataclass
from typing import Final

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.vocabulary import BLOCKS

from .lexer import Lexed, lex_lines
from .tree import Block

_OPENS: Final = re.compile(rf"^[ \t]*(?:{'|'.join(BLOCKS)})(?![^\s{{}},%<>=!\"#])", re.MULTILINE)


@dataclass(slots=True)
class Section:
    """Lines from one that opens a block to before the next; the first section is what stands before all of them.

    What was read of it is kept where it has no mistake, and so does not depend on the text around it.

    Attributes:
        number: of its first line in the file.
        text: its lines, the last one without its end.
        lexed: its tokens and comments.
        block: the one block that it holds.
    """

    number: int
    text: str
    lexed: Lexed | None = None
    block: Block | None = None

    def lex(self, findings: Findings) -> Lexed:
        """Its tokens and comments; where something is no token they are made, and it is reported, each time."""
        if self.lexed is not None:
            return self.lexed
        mistakes = len(findings.items)
        lexed = lex_lines(self.text.split("\n"), self.number, findings)
        if len(findings.items) == mistakes:
            self.lexed = lexed
        return lexed


Sections = dict[tuple[int, str], Section]


def cut(text: str, known: Sections) -> Sections:
    """The sections of a text in their order, by first line and text.

    Args:
        text: the policy.
        known: sections of a text before it; one that stands where it stood is taken from there.
    """
    starts = [match.start() for match in _OPENS.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    # A line's end parts two sections and is in neither; the last section has none behind it.
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    number = 1
    sections: Sections = {}
    for start, end in zip(starts, ends, strict=True):
        piece = text[start:end]
        sections[number, piece] = known.get((number, piece)) or Section(number, piece)
        number += piece.count("\n") + 1
    return sections
