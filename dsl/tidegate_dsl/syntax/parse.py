"""Tokens to a syntax tree, by recursive descent; after a mistake it goes on behind the clause.

One mistake gives one error: a clause that is reported is left out, and `Body.broken` remembers that it was there.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tidegate_dsl.diagnostics import Findings, Source, either, listed, nearest, spelling
from tidegate_dsl.vocabulary import BLOCKS, TOP_LEVEL

from . import tree
from .body import BodyReader
from .clauses import GRAMMARS, HEAD_GRAMMAR
from .cursor import Cursor, GiveUp
from .lexer import Comment, Kind, Token, end_of
from .sections import Section, Sections, cut


def parse_policy(source: Source, findings: Findings, sections: Sections | None = None) -> tree.File:
    """The tree of what could be read; mistakes go to `findings`.

    Args:
        source: the text.
        findings: where mistakes go.
        sections: the text cut by `sections.cut`, with what is known of it; more is known behind this.
    """
    tokens: list[Token] = []
    comments: list[Comment] = []
    places: dict[int, tuple[Section, int]] = {}
    for section in (cut(source.text, {}) if sections is None else sections).values():
        start, lexed = len(tokens), section.lex(findings)
        tokens += lexed.tokens
        comments += lexed.comments
        places[start] = (section, len(tokens))
    tokens.append(end_of(tokens))
    return _Parser(Cursor(tokens, findings), findings, places).file(tuple(comments))


class _Parser:
    """A parser of one file.

    Args:
        cursor: its tokens.
        findings: where mistakes go.
        places: its sections by their first token, each with the token behind it.
    """

    def __init__(self, cursor: Cursor, findings: Findings, places: Mapping[int, tuple[Section, int]]) -> None:
        self.at: Final = cursor
        self.findings: Final = findings
        self.places: Final = places
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
            self._section(token.text)
        elif self.at.is_punctuation("}"):
            if not self.astray:
                self.findings.error("P105", "this `}` closes nothing", token.span)
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
        self.at.take()
        if self.at.token.kind in (Kind.WORD, Kind.STRING):
            self.skipped.add(self.at.token.text.strip('"'))
        self.bodies.skip_clause(deep=self.at.opens_block())

    def _section(self, kind: str) -> None:
        """Take a block, of a section that is known the one that was read of it before.

        A section that holds one block, closed and without a mistake, is the same block in every file: the parser
        looks beyond it for a brace and for the next block's keyword only, and the next section starts with one.
        """
        section, end = self.places.get(self.at.index, (None, 0))
        if section is not None and section.block is not None:
            self.blocks.append(section.block)
            self.at.go_to(end)
            return
        mistakes = len(self.findings.items)
        self._block(kind)
        self.at.skip_newlines()
        if section is not None and section.lexed is not None and self.at.index == end:
            section.block = self.blocks[-1] if len(self.findings.items) == mistakes else None

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
