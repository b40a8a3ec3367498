"""Text to tokens, and tokens to the syntax tree (`tree`); what is read once is remembered."""

from .clauses import GRAMMARS, HEAD_GRAMMAR, OVERRIDE_GRAMMAR, Grammar
from .cursor import Cursor, GiveUp
from .lexer import NUMBER, Comment, Kind, Lexed, Token, lex
from .memory import Memory
from .parse import parse_policy
from .tree import Quantity, find

__all__ = [
    "GRAMMARS",
    "HEAD_GRAMMAR",
    "NUMBER",
    "OVERRIDE_GRAMMAR",
    "Comment",
    "Cursor",
    "GiveUp",
    "Grammar",
    "Kind",
    "Lexed",
    "Memory",
    "Quantity",
    "Token",
    "find",
    "lex",
    "parse_policy",
]
