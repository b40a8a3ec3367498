"""The grammar of every clause, block by block: a function called behind its first word."""

from typing import Final

from tidegate_dsl.syntax import tree
from tidegate_dsl.syntax.cursor import Cursor
from tidegate_dsl.syntax.lexer import Token

from .rules import APPLY, EXPERIMENT, GUARD, OVERRIDE_GRAMMAR
from .selects import SELECT
from .shared import Grammar
from .tests import TEST
from .windows import INITCWND, LEARN

__all__ = ["GRAMMARS", "HEAD_GRAMMAR", "OVERRIDE_GRAMMAR", "Grammar"]


def _edition(at: Cursor, first: Token) -> tree.Clause:
    edition = at.quantity("an edition")
    return tree.Edition("edition", first.span.to(at.last), tree.Name(edition.text, edition.span))


def _inventory(at: Cursor, first: Token) -> tree.Clause:
    path = at.string("the inventory's path in quotes")
    return tree.Inventory("inventory", first.span.to(at.last), path)


HEAD_GRAMMAR: Final[dict[str, Grammar]] = {"edition": _edition, "inventory": _inventory}
GRAMMARS: Final[dict[str, dict[str, Grammar]]] = {
    "select": SELECT,
    "apply": APPLY,
    "learn": LEARN,
    "initcwnd": INITCWND,
    "guard": GUARD,
    "experiment": EXPERIMENT,
    "test": TEST,
}
