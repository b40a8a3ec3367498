"""Tokens to a syntax tree, by recursive descent; after a mistake it goes on behind the clause.

One mistake gives one error: a clause that is reported is left out, and `Body.broken` remembers that it was there.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from tidegate_dsl.diagnostics import Findings, Source, either, listed, nearest, spelling
from tidegate_dsl.vocabulary import BLOCKS, TOP_LEVEL

from . import tree
from .body import BodyReader
from .clauses import GRAMMARS, HEAD_GRAMMAR
from .cursor import Cursor, GiveUp
from .lexer import Comment, Kind, Lexed, Token, end_of, lex_lines
from .memory import Memory
from .sections import Section, cut


def parse_policy(source: Source, findings: Findings, memory: Memory | None = None) -> tree.File:
    """The tree of what could be read; mistakes go to `findings`.

    A piece that is one block without a mistake is read by itself, and not again while `memory` has it. All others
    are read one after the other: the parser looks beyond them for a brace and for the next block's keyword only, and
    the next piece starts with one.

    Args:
        source: the text.
        findings: where mistakes go.
        memory: what is known of a text before it.
    """
    tokens: list[Token] = []
    comments: list[Comment] = []
    known: dict[int, _Known] = {}
    pieces = cut(source.text)
    sections = (memory or Memory()).sections([piece.text for piece in pieces], _section)
    for (above, text), section in zip(pieces, sections, strict=True):
        start = len(tokens)
        if section is None:
            lexed = lex_lines(text.split("\n"), above + 1, findings)
            comments += lexed.comments
        else:
            lexed = section.lexed
            comments += [Comment(comment.text, comment.span.below(above)) for comment in lexed.comments]
            known[start] = _Known(section.at(above), start + len(lexed.tokens))
        tokens += lexed.tokens
    return _parse(Lexed(tokens, comments), findings, known)


def parse_tokens(lexed: Lexed, findings: Findings) -> tree.File:
    """The tree of a file's tokens, read one after the other."""
    return _parse(lexed, findings, {})


def _section(text: str) -> Section | None:
    """The block that a piece is; None where it is something else, or has a mistake."""
    findings = Findings("")
    lexed = lex_lines(text.split("\n"), 1, findings)
    file = parse_tokens(lexed, findings)
    if findings.items or len(file.blocks) != 1 or file.head.clauses:
        return None
    return Section(lexed, file.blocks[0])


def _parse(lexed: Lexed, findings: Findings, known: Mapping[int, "_Known"]) -> tree.File:
    tokens = [*lexed.tokens, end_of(lexed.tokens)]
    return _Parser(Cursor(tokens, findings), findings, known).file(tuple(lexed.comments))


class _Known(NamedTuple):
    """A block that was read, and the token behind its section."""

    block: tree.Block
    end: int


class _Parser:
    """A parser of one file.

    Args:
        cursor: its tokens.
        findings: where mistakes go.
        known: blocks that were read, by their first token.
    """

    def __init__(self, cursor: Cursor, findings: Findings, known: Mapping[int, _Known]) -> None:
        self.at: Final = cursor
        self.findings: Final = findings
        self.known: Final = known
        self.bodies: Final = BodyReader(cursor, findings)
        self.head: list[tree.Clause] = []
        self.head_broken: set[str] = set()
        self.blocks: list[tree.Block] = []
        self.skipped: set[str] = set()
        self.astray = False  # behind a block that was closed too early: its clauses are one mistake

    def file(self, comments: tuple[Comment, ...]) -> tree.File:
        while True:
            self.at.skip_newlines()
            token = self.at.token
            if token.kind is Kind.END:
                break
            self._top_level(token)
        return tree.File(
            tree.Body(tuple(self.head), frozenset(self.head_broken)),
            tuple(self.blocks),
            frozenset(self.skipped),
            comments,
        )

    def _top_level(self, token: Token) -> None:
        if token.kind is Kind.WORD and token.text in HEAD_GRAMMAR:
            self.bodies.clause(TOP_LEVEL, HEAD_GRAMMAR, self.head, self.head_broken)
        elif token.kind is Kind.WORD and token.text in BLOCKS:
            self.astray = False
            if known := self.known.get(self.at.index):
                self.blocks.append(known.block)
                self.at.go_to(known.end)
            else:
                self._block(token.text)
        elif self.at.is_punctuation("}"):
            if not self.astray:
                way_out = "remove it, or open its block with `{`"
                self.findings.error("P105", "this `}` closes nothing", token.span, help=way_out)
            self.astray = False
            self.at.take()
        else:
            self._unknown_top_level(token)

    def _unknown_top_level(self, token: Token) -> None:
        homes = [block for block, rules in BLOCKS.items() if token.text in rules]
        if homes:
            if not self.astray:
                self.findings.error(
                    "P101",
                    f"`{token.text}` stands outside of a block",
                    token.span,
                    help=f"it belongs in {either(homes)}; is there a `}}` too many above?",
                )
            self.astray = True
            if self.blocks:  # the clause was meant for the block that ended too early
                last = self.blocks[-1]
                body = replace(last.body, broken=last.body.broken | {token.text})
                self.blocks[-1] = replace(last, body=body)
            self.bodies.skip_clause(deep=self.at.opens_block())
            return
        known = (*BLOCKS, *TOP_LEVEL)
        meant = nearest(token.text, known) if token.kind is Kind.WORD else None
        if token.kind is not Kind.BROKEN:
            self.findings.error(
                "P101",
                f"`{token.text}` opens neither a block nor a clause",
                token.span,
                help=f"did you mean `{meant}`?" if meant else f"a file holds {listed((*TOP_LEVEL, *BLOCKS))}",
                fix=spelling(token.span, token.text, known) if meant else None,
            )
        if meant in BLOCKS:
            self._block(meant)
            return
        self.head_broken.add(meant or "")
        if not self.at.is_punctuation("{"):  # with what it opens it is one mistake
            self.at.take()
        if self.at.token.kind in (Kind.WORD, Kind.STRING):
            self.skipped.add(self.at.token.text.strip('"'))
        self.bodies.skip_clause(deep=self.at.opens_block())

    def _block(self, kind: str) -> None:
        first = self.at.take()
        self.at.forms = (f'{kind} "NAME" {{' if kind == "test" else f"{kind} NAME {{",)
        try:
            name = (
                self.at.string("the test's name in quotes")
                if kind == "test"
                else self.at.name(f"a name for this {kind}")
            )
            header = first.span.to(name.span)
            if self.at.is_punctuation("{"):
                self.at.take()
            else:
                self.bodies.missing_brace()
        except GiveUp:
            self.bodies.skip_clause(deep=self.at.opens_block())
            return
        body = self.bodies.body(kind, BLOCKS[kind], GRAMMARS[kind], header)
        self.blocks.append(tree.Block(kind, name, header, body))
