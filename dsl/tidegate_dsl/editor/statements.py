"""Tokens to blocks and the statements in them; whatever the file's mistakes, each token belongs somewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate_dsl.syntax import Kind, Token
from tidegate_dsl.vocabulary import BLOCKS, OVERRIDE, TOP_LEVEL, ClauseRule

from .text import Place

OVERRIDE_BLOCK: Final = "override"


@dataclass(frozen=True, slots=True)
class Statement:
    """A clause or a block's header: the tokens up to the end of the line or a brace.

    `block` is what it stands in: None outside of blocks.
    """

    tokens: tuple[Token, ...]
    block: "Block | None"

    @property
    def keyword(self) -> str:
        """Its first word."""
        return self.tokens[0].text


@dataclass(slots=True, eq=False)
class Block:
    """A block, or an override in one.

    Attributes:
        kind: a key of `BLOCKS`, or `override`.
        keyword: its first token.
        name: its name, where it has one.
        around: the block that an override stands in.
        start: behind its `{`, or behind its header where that is missing.
        end: before its `}`, or where the next block or the file's end closes it.
        last_line: the line of its `}`.
        statements: what stands in it.
    """

    kind: str
    keyword: Token
    name: Token | None
    around: "Block | None"
    start: Place
    end: Place
    last_line: int
    statements: list[Statement] = field(default_factory=list)

    def holds(self, place: Place) -> bool:
        """Whether a place is between its braces."""
        return self.start <= place <= self.end


@dataclass(frozen=True, slots=True)
class Statements:
    """A file's blocks, those around others first, and all its statements in order."""

    blocks: tuple[Block, ...]
    statements: tuple[Statement, ...]

    def block_at(self, place: Place) -> Block | None:
        """The innermost block that a place is in."""
        return next((block for block in reversed(self.blocks) if block.holds(place)), None)

    def statement_at(self, place: Place) -> Statement | None:
        """The statement that has a token at a place."""
        return next(
            (each for each in self.statements if any(touches(token, place) for token in each.tokens)), None
        )


def rules_of(block: Block | None) -> dict[str, ClauseRule]:
    """The clauses that may stand in a block, or outside of all."""
    if block is None:
        return TOP_LEVEL
    return OVERRIDE if block.kind == OVERRIDE_BLOCK else BLOCKS[block.kind]


def touches(token: Token, place: Place) -> bool:
    """Whether a place is in a token or at one of its ends."""
    return token.span.line == place.line and token.span.column <= place.column <= token.span.end_column


def find_statements(tokens: Sequence[Token]) -> Statements:
    """The blocks and statements of a file's tokens."""
    reader = _Reader()
    for token in tokens:
        reader.read(token)
    while reader.open:
        reader.close(tokens[-1])
    return Statements(tuple(reader.blocks), tuple(reader.statements))


class _Reader:
    """Takes a file's tokens in order."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.statements: list[Statement] = []
        self.open: list[Block] = []
        self._taken: list[Token] = []

    def read(self, token: Token) -> None:
        """Take the next token."""
        brace = token.text if token.kind is Kind.PUNCTUATION and token.text in ("{", "}") else ""
        if not brace and token.kind not in (Kind.NEWLINE, Kind.END):
            self._word(token)
            return
        statement = self._end_statement()
        block = _opened(statement, token) if brace == "{" and statement else None
        if block:
            self.blocks.append(block)
            self.open.append(block)
        if brace == "}" and self.open:
            self.close(token)

    def close(self, token: Token) -> None:
        """End the innermost block before a token."""
        block = self.open.pop()
        block.end, block.last_line = Place(token.span.line, token.span.column), token.span.line

    def _word(self, token: Token) -> None:
        if not self._taken and token.kind is Kind.WORD and token.text in BLOCKS:
            while self.open:  # its `}` is missing
                self.close(token)
        self._taken.append(token)

    def _end_statement(self) -> Statement | None:
        if not self._taken:
            return None
        statement = Statement(tuple(self._taken), self.open[-1] if self.open else None)
        self._taken.clear()
        self.statements.append(statement)
        if statement.block:
            statement.block.statements.append(statement)
        return statement


def _opened(header: Statement, brace: Token) -> Block | None:
    """The block that a header opens; None where it is none of ours."""
    known = header.keyword in BLOCKS if header.block is None else header.keyword == OVERRIDE_BLOCK
    if not known:
        return None
    start = Place(brace.span.line, brace.span.end_column)
    name = header.tokens[1] if len(header.tokens) > 1 else None
    return Block(header.keyword, header.tokens[0], name, header.block, start, start, start.line)
