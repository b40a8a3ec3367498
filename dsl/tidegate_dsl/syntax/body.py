"""What stands between a block's braces, clause by clause; after a mistake it goes on behind the clause."""

from collections.abc import Collection, Mapping
from typing import Final

from tidegate_dsl.diagnostics import Findings, Span, either, listed, nearest, spelling
from tidegate_dsl.vocabulary import BLOCKS, OVERRIDE, ClauseRule

from . import tree
from .clauses import OVERRIDE_GRAMMAR, Grammar
from .cursor import Cursor, GiveUp, opens
from .lexer import Kind, Token


class BodyReader:
    """Reads bodies of blocks and overrides.

    Args:
        cursor: where the parser is.
        findings: where mistakes go.
    """

    def __init__(self, cursor: Cursor, findings: Findings) -> None:
        self._at: Final = cursor
        self._findings: Final = findings
        self._unclosed = False  # a block ran to the end of the file, or an override into the next block
        self._closed = True  # the block that was read last ended with its `}`

    def body(
        self,
        kind: str,
        rules: Mapping[str, ClauseRule],
        grammars: Mapping[str, Grammar],
        header: Span,
        ends: Collection[str] = (),
    ) -> tree.Body:
        """What stands between the braces.

        Args:
            kind: what errors call it.
            rules: its clauses.
            grammars: how they are read.
            header: where it starts.
            ends: words that stand outside of it only; it ends before one, unclosed.
        """
        clauses: list[tree.Clause] = []
        broken: set[str] = set()
        while True:
            self._at.skip_newlines()
            token = self._at.token
            self._closed = self._at.is_punctuation("}")
            if self._closed:
                self._at.take()
                break
            if token.kind is Kind.END or self._at.is_word(*ends) or self._opens_next():
                if not self._unclosed:
                    self._findings.error(
                        "P104", f"this {kind} block is not closed", header, help="close it with `}`"
                    )
                # The block around an override stays open for the same missing brace, unless it goes on here.
                self._unclosed = token.kind is Kind.END or (kind == "override" and token.text in BLOCKS)
                break
            if token.kind is Kind.WORD and token.text == "override" and "override" in rules:
                self._override(rules["override"], clauses, broken)
            elif token.kind is Kind.WORD and token.text in grammars:
                self.clause(rules, grammars, clauses, broken)
            else:
                self._unknown_clause(kind, token, rules, broken)
        return tree.Body(tuple(clauses), frozenset(broken))

    def _opens_next(self) -> bool:
        """Whether a block opens here; without a brace its keyword is a mistaken clause: `initcwnd 20 segments`."""
        opens = self._at.token.text in BLOCKS and self._at.token.kind is Kind.WORD
        return opens and (self._at.opens_block() or self._at.brace_on_next_line())

    def clause(
        self,
        rules: Mapping[str, ClauseRule],
        grammars: Mapping[str, Grammar],
        clauses: list[tree.Clause],
        broken: set[str],
    ) -> None:
        """Read a clause into `clauses`; the first word of one that is reported goes to `broken`."""
        first = self._at.take()
        self._at.forms = rules[first.text].forms
        try:
            clause = grammars[first.text](self._at, first)
            self._end_of_clause(rules)
        except GiveUp:
            broken.add(first.text)
            self._leave_line(rules, broken)
        else:
            clauses.append(clause)

    def _leave_line(self, rules: Mapping[str, ClauseRule], broken: set[str]) -> None:
        """Go behind a clause that is reported; clauses behind it on its line are the same mistake."""
        others = self._at.words_ahead & rules.keys()
        broken |= others
        self.skip_clause(deep="override" in others and self._at.opens_block())

    def _override(self, rule: ClauseRule, clauses: list[tree.Clause], broken: set[str]) -> None:
        first = self._at.take()
        self._at.forms = rule.forms
        try:
            pop = self._at.name("a POP")
            closed = self._at.closes_within(BLOCKS)
            if self._at.at_end and closed:
                self.missing_brace()
            else:
                self._at.punctuation("{")
        except GiveUp:
            broken.add(first.text)
            self.skip_clause(deep=self._at.opens_block())
            return
        header = first.span.to(pop.span)
        ends = () if closed else BLOCKS["apply"].keys() - OVERRIDE.keys()
        body = self.body("override", OVERRIDE, OVERRIDE_GRAMMAR, header, ends)
        clauses.append(tree.Override(f"override {pop.text}", header, pop, body))
        if self._closed:
            try:
                self._end_of_clause(BLOCKS["apply"])
            except GiveUp:
                self._leave_line(BLOCKS["apply"], broken)

    def missing_brace(self) -> None:
        """Report a header without `{`, and read on as if it were there."""
        try:
            raise self._at.fail("`{`", fix=None if self._at.brace_follows() else self._at.missing_at_end("{"))
        except GiveUp:
            self.skip_clause(deep=False)
        self._at.skip_newlines()
        if self._at.is_punctuation("{"):
            self._at.take()

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
                way_out = f"it belongs in {either(homes)}"
            elif form:
                way_out = f"write `{form}`"
            else:
                way_out = f"{kind} holds {listed(rules)}"
            fix = spelling(token.span, token.text, rules) if meant else None
            self._findings.error(
                "P102", f"`{token.text}` is no clause of {kind}", token.span, help=way_out, fix=fix
            )
        broken.add(meant or keyword)
        self._at.take()
        self.skip_clause(deep=self._at.opens_block())

    def _end_of_clause(self, rules: Mapping[str, ClauseRule]) -> None:
        if self._at.at_end:
            return
        token = self._at.token
        if not self._at.reported:
            written = dict.fromkeys(word.strip("[]") for form in self._at.forms for word in form.split())
            words = [word for word in written if word.islower() and word != token.text]
            meant = nearest(token.text, words) if token.kind is Kind.WORD else None
            if token.text in rules:
                way_out = "write one clause a line"
            elif meant:
                way_out = f"did you mean `{meant}`?"
            else:
                way_out = f"write {either(self._at.forms)}"
            self._findings.error(
                "P106",
                f"`{token.text}` follows the end of the clause",
                token.span,
                help=way_out,
                fix=spelling(token.span, token.text, words) if meant and token.text not in rules else None,
            )
        raise GiveUp

    def skip_clause(self, *, deep: bool) -> None:
        """Go behind the clause: to the end of its line, or before the `}` of its block.

        Args:
            deep: the line opens a block, which is skipped with it, even over several lines.
        """
        depth = 0
        starts_line = False
        while True:
            token = self._at.token
            if token.kind is Kind.END or (token.kind is Kind.NEWLINE and (depth == 0 or not deep)):
                return
            if starts_line and token.kind is Kind.WORD and token.text in BLOCKS:
                return
            starts_line = token.kind is Kind.NEWLINE
            if opens(token):
                depth += 1
            elif self._at.is_punctuation("}"):
                if depth == 0:
                    return
                depth -= 1
            self._at.take()


def _holding(word: str, rules: Mapping[str, ClauseRule]) -> tuple[str, str]:
    """The clause, and its form, that a word stands in without its first one: `churn` in `limit churn <= 30%`."""
    for rule in rules.values():
        for form in rule.forms:
            if {word, word.upper()} & set(form.split()):
                return rule.keyword, form
    return "", ""
