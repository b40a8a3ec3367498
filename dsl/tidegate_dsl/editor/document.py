"""A policy that is open in an editor."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tidegate_dsl.diagnostics import Diagnostic, Findings, Source
from tidegate_dsl.fleet import Limits
from tidegate_dsl.model import Fleet
from tidegate_dsl.syntax import Comment, Kind, Lexed, Token, lex

from .statements import Statements, find_statements, touches
from .text import Place, Text


@dataclass(frozen=True)
class Document:
    """One version of the text, and what it was checked against.

    Attributes:
        path: the file's path, or what stands for it.
        text: as the editor has it.
        limits: the limits file.
        diagnostics: what the check found.
        fleet_of: the fleet of an inventory by its path in the policy; None where it can not be read.
    """

    path: str
    text: Text
    limits: Limits
    diagnostics: tuple[Diagnostic, ...]
    fleet_of: Callable[[str], Fleet | None]

    @cached_property
    def source(self) -> Source:
        """The text as the language reads it."""
        return Source(self.path, self.text.text)

    @cached_property
    def _lexed(self) -> Lexed:
        return lex(self.source, Findings(self.path))

    @property
    def tokens(self) -> list[Token]:
        """All tokens."""
        return self._lexed.tokens

    @property
    def comments(self) -> list[Comment]:
        """All comments."""
        return self._lexed.comments

    @cached_property
    def statements(self) -> Statements:
        """Blocks and statements."""
        return find_statements(self.tokens)

    @cached_property
    def inventory(self) -> Token | None:
        """The path of the inventory, with its quotes."""
        return next(
            (
                each.tokens[1]
                for each in self.statements.statements
                if each.keyword == "inventory" and each.block is None and len(each.tokens) > 1
                if each.tokens[1].kind is Kind.STRING
            ),
            None,
        )

    @cached_property
    def fleet(self) -> Fleet | None:
        """The fleet; None where the inventory is not named or can not be read."""
        return self.fleet_of(self.inventory.text[1:-1]) if self.inventory else None

    def token_at(self, place: Place) -> Token | None:
        """The token at a place, a word rather than what touches it."""
        found = [
            token
            for token in self.tokens
            if token.kind not in (Kind.NEWLINE, Kind.END) and touches(token, place)
        ]
        words = [token for token in found if token.kind is not Kind.PUNCTUATION]
        return next(iter(words or found), None)

    def in_comment(self, place: Place) -> bool:
        """Whether a place is behind a comment's `#`."""
        return any(
            comment.span.line == place.line and comment.span.column < place.column
            for comment in self.comments
        )
