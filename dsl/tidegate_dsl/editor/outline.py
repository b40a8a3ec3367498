"""A file's blocks, for an editor's outline and its folds."""

from dataclasses import dataclass

from .document import Document
from .statements import Block, Statement
from .text import Place


@dataclass(frozen=True, slots=True)
class Symbol:
    """A block or a clause of it.

    Attributes:
        name: as the outline shows it.
        kind: the block's kind, or `clause`.
        detail: the rest of a clause.
        start: of the whole.
        end: of the whole.
        name_start: of what is selected.
        name_end: of what is selected.
        children: the clauses.
    """

    name: str
    kind: str
    detail: str
    start: Place
    end: Place
    name_start: Place
    name_end: Place
    children: "tuple[Symbol, ...]" = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines from 1 that an editor may hide behind the first."""

    first_line: int
    last_line: int
    comment: bool


def symbols(document: Document) -> list[Symbol]:
    """The blocks with their clauses, in order."""
    return [_symbol(document, block) for block in document.statements.blocks if block.around is None]


def folds(document: Document) -> list[Fold]:
    """Blocks of several lines, and comments of several whole lines."""
    blocks = [
        Fold(block.keyword.span.line, block.last_line, comment=False)
        for block in document.statements.blocks
        if block.last_line > block.keyword.span.line
    ]
    return blocks + _comment_folds(document)


def _symbol(document: Document, block: Block) -> Symbol:
    name = block.name or block.keyword
    end = Place(block.end.line, block.end.column + 1)
    line = document.source.lines[block.end.line - 1]
    return Symbol(
        name=name.text.strip('"') or block.kind,
        kind=block.kind,
        detail=block.kind,
        start=_start(block),
        end=min(end, Place(block.end.line, len(line) + 1)),
        name_start=Place(name.span.line, name.span.column),
        name_end=Place(name.span.line, name.span.end_column),
        children=tuple(_clause(document, each) for each in block.statements),
    )


def _clause(document: Document, statement: Statement) -> Symbol:
    first, last = statement.tokens[0].span, statement.tokens[-1].span
    start, end = Place(first.line, first.column), Place(last.line, last.end_column)
    rest = statement.tokens[1:]
    detail = document.source.words(rest[0].span.to(last)) if rest else ""
    return Symbol(statement.keyword, "clause", detail, start, end, start, end)


def _start(block: Block) -> Place:
    return Place(block.keyword.span.line, block.keyword.span.column)


def _comment_folds(document: Document) -> list[Fold]:
    alone = [
        comment.span.line
        for comment in document.comments
        if not document.source.lines[comment.span.line - 1][: comment.span.column - 1].strip()
    ]
    runs: list[list[int]] = []
    for line in alone:
        if runs and runs[-1][-1] == line - 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    return [Fold(run[0], run[-1], comment=True) for run in runs if len(run) > 1]
