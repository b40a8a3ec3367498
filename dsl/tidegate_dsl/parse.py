"""Tokens to a syntax tree, by recursive descent; after a mistake it goes on behind the clause.

One mistake gives one error: a clause that is reported is left out, and `Body.broken` remembers that it was there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from . import syntax
from .clauses import GRAMMARS, HEAD_GRAMMAR, OVERRIDE_GRAMMAR, Grammar
from .cursor import Cursor, GiveUp, opens
from .diagnostics import Findings
from .lexer import Comment, Kind, Token, end_of
from .sections import Section, Sections, cut
from .source import Source, Span
from .suggest import listed, nearest, spelling
from .vocabulary import BLOCKS, OVERRIDE, TOP_LEVEL, ClauseRule


def parse_policy(source: Source, findings: Findings, sections: Sections | None = None) -> syntax.File:
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
        self.head: list[syntax.Clause] = []
        self.head_broken: set[str] = set()
        self.blocks: list[syntax.Block] = []
        self.skipped: set[str] = set()
        self.unclosed = False  # a block ran to the end of the file, or an override into the next block
        self.closed = True  # the block that was read last ended with its `}`
        self.astray = False  # behind a block that was closed too early: its clauses are one mistake

    def file(self, comments: tuple[Comment, ...]) -> syntax.File:
        while True:
            self.at.skip_newlines()
            token = self.at.token
            if token.kind is Kind.END:
                break
            self._top_level(token)
        return syntax.File(
            syntax.Body(tuple(self.head), frozenset(self.head_broken)),
            tuple(self.blocks),
            frozenset(self.skipped),
            comments,
        )

    def _top_level(self, token: Token) -> None:
        if token.kind is Kind.WORD and token.text in HEAD_GRAMMAR:
            self._clause(TOP_LEVEL, HEAD_GRAMMAR, self.head, self.head_broken)
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
                    help=f"it belongs in {_either(homes)}; is there a `}}` too many above?",
                )
            self.astray = True
            if self.blocks:  # the clause was meant for the block that ended too early
                last = self.blocks[-1]
                body = replace(last.body, broken=last.body.broken | {token.text})
                self.blocks[-1] = replace(last, body=body)
            self._skip_clause(deep=self.at.opens_block())
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
        self._skip_clause(deep=self.at.opens_block())

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
                self._missing_brace()
        except GiveUp:
            self._skip_clause(deep=self.at.opens_block())
            return
        body = self._body(kind, BLOCKS[kind], GRAMMARS[kind], header)
        self.blocks.append(syntax.Block(kind, name, header, body))

    def _missing_brace(self) -> None:
        """Report a header without `{`, and read on as if it were there."""
        try:
            raise self.at.fail("`{`", fix=None if self.at.brace_follows() else self.at.missing_at_end("{"))
        except GiveUp:
            self._skip_clause(deep=False)
        self.at.skip_newlines()
        if self.at.is_punctuation("{"):
            self.at.take()

    def _body(
        self,
        kind: str,
        rules: Mapping[str, ClauseRule],
        grammars: Mapping[str, Grammar],
        header: Span,
        ends: Collection[str] = (),
    ) -> syntax.Body:
        """What stands between the braces.

        Args:
            kind: what errors call it.
            rules: its clauses.
            grammars: how they are read.
            header: where it starts.
            ends: words that stand outside of it only; it ends before one, unclosed.
        """
        clauses: list[syntax.Clause] = []
        broken: set[str] = set()
        while True:
            self.at.skip_newlines()
            token = self.at.token
            self.closed = self.at.is_punctuation("}")
            if self.closed:
                self.at.take()
                break
            if token.kind is Kind.END or self.at.is_word(*ends) or self._opens_next():
                if not self.unclosed:
                    self.findings.error(
                        "P104", f"this {kind} block is not closed", header, help="close it with `}`"
                    )
                # The block around an override stays open for the same missing brace, unless it goes on here.
                self.unclosed = token.kind is Kind.END or (kind == "override" and token.text in BLOCKS)
                break
            if token.kind is Kind.WORD and token.text == "override" and "override" in rules:
                self._override(rules["override"], clauses, broken)
            elif token.kind is Kind.WORD and token.text in grammars:
                self._clause(rules, grammars, clauses, broken)
            else:
                self._unknown_clause(kind, token, rules, broken)
        return syntax.Body(tuple(clauses), frozenset(broken))

    def _opens_next(self) -> bool:
        """Whether a block opens here; without a brace its keyword is a mistaken clause: `initcwnd 20 segments`."""
        opens = self.at.token.text in BLOCKS and self.at.token.kind is Kind.WORD
        return opens and (self.at.opens_block() or self.at.brace_on_next_line())

    def _clause(
        self,
        rules: Mapping[str, ClauseRule],
        grammars: Mapping[str, Grammar],
        clauses: list[syntax.Clause],
        broken: set[str],
    ) -> None:
        first = self.at.take()
        self.at.forms = rules[first.text].forms
        try:
            clause = grammars[first.text](self.at, first)
            self._end_of_clause(rules)
        except GiveUp:
            broken.add(first.text)
            self._skip_clause(deep=False)
        else:
            clauses.append(clause)

    def _override(self, rule: ClauseRule, clauses: list[syntax.Clause], broken: set[str]) -> None:
        first = self.at.take()
        self.at.forms = rule.forms
        try:
            pop = self.at.name("a POP")
            closed = self.at.closes_within(BLOCKS)
            if self.at.at_end and closed:
                self._missing_brace()
            else:
                self.at.punctuation("{")
        except GiveUp:
            broken.add(first.text)
            self._skip_clause(deep=self.at.opens_block())
            return
        header = first.span.to(pop.span)
        ends = () if closed else BLOCKS["apply"].keys() - OVERRIDE.keys()
        body = self._body("override", OVERRIDE, OVERRIDE_GRAMMAR, header, ends)
        clauses.append(syntax.Override(f"override {pop.text}", header, pop, body))
        if self.closed:
            try:
                self._end_of_clause(BLOCKS["apply"])
            except GiveUp:
                self._skip_clause(deep=False)

    def _unknown_clause(
        self, kind: str, token: Token, rules: Mapping[str, ClauseRule], broken: set[str]
    ) -> None:
        meant = nearest(token.text, rules) if token.kind is Kind.WORD else None
        homes = [block for block, others in BLOCKS.items() if token.text in others]
        keyword, form = _holding(token.text, rules)
        if token.kind is not Kind.BROKEN:
            if meant:
                way_out = f"did you mean `{meant}`?"
            elif homes:
                way_out = f"it belongs in {_either(homes)}"
            elif form:
                way_out = f"write `{form}`"
            else:
                way_out = f"{kind} holds {listed(rules)}"
            fix = spelling(token.span, token.text, rules) if meant else None
            self.findings.error(
                "P102", f"`{token.text}` is no clause of {kind}", token.span, help=way_out, fix=fix
            )
        broken.add(meant or keyword)
        self.at.take()
        self._skip_clause(deep=self.at.opens_block())

    def _end_of_clause(self, rules: Mapping[str, ClauseRule]) -> None:
        if self.at.at_end:
            return
        token = self.at.token
        if not self.at.reported:
            written = dict.fromkeys(word.strip("[]") for form in self.at.forms for word in form.split())
            words = [word for word in written if word.islower() and word != token.text]
            meant = nearest(token.text, words) if token.kind is Kind.WORD else None
            if token.text in rules:
                way_out = "write one clause a line"
            elif meant:
                way_out = f"did you mean `{meant}`?"
            else:
                way_out = f"write {_either(self.at.forms)}"
            self.findings.error(
                "P106",
                f"`{token.text}` follows the end of the clause",
                token.span,
                help=way_out,
                fix=spelling(token.span, token.text, words) if meant and token.text not in rules else None,
            )
        raise GiveUp

    def _skip_clause(self, *, deep: bool) -> None:
        """Go behind the clause: to the end of its line, or before the `}` of its block.

        Args:
            deep: the line opens a block, which is skipped with it, even over several lines.
        """
        depth = 0
        starts_line = False
        while True:
            token = self.at.token
            if token.kind is Kind.END or (token.kind is Kind.NEWLINE and (depth == 0 or not deep)):
                return
            if starts_line and token.kind is Kind.WORD and token.text in BLOCKS:
                return
            starts_line = token.kind is Kind.NEWLINE
            if opens(token):
                depth += 1
            elif self.at.is_punctuation("}"):
                if depth == 0:
                    return
                depth -= 1
            self.at.take()


def _holding(word: str, rules: Mapping[str, ClauseRule]) -> tuple[str, str]:
    """The clause, and its form, that a word stands in without its first one: `churn` in `limit churn <= 30%`."""
    for rule in rules.values():
        for form in rule.forms:
            if {word, word.upper()} & set(form.split()):
                return rule.keyword, form
    return "", ""


def _either(words: Iterable[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)
