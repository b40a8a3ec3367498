"""A clause's form, as the specification writes it, to a snippet (LSP 3.17, "Snippet Syntax")."""

import re
from collections.abc import Iterable
from typing import Final

_OPTIONAL: Final = re.compile(r" \[[^\]]*\]")
_MORE: Final = re.compile(r", [A-Z]+")
_HOLE: Final = re.compile(r"/?\b[A-Z]+\b|\b[a-z0-9]+(?:\|(?:[a-z0-9]+|[A-Z]+))+")


class Holes:
    """Numbers the places of one snippet from 1."""

    def __init__(self) -> None:
        self._last = 0

    def fill(self, form: str) -> str:
        """The form without its optional parts, each thing to write as a place."""
        plain = _MORE.sub("", _OPTIONAL.sub("", form))
        escaped = plain.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")
        return _HOLE.sub(self._place, escaped)

    def named(self, text: str) -> str:
        """A place that holds a text."""
        self._last += 1
        return f"${{{self._last}:{text}}}"

    def _place(self, match: re.Match[str]) -> str:
        text = match.group()
        if "|" in text:
            self._last += 1
            return f"${{{self._last}|{text.replace('|', ',')}|}}"
        return f"/{self.named(text[1:])}" if text.startswith("/") else self.named(text)


def clause_snippet(form: str) -> str:
    """A clause to fill in."""
    return Holes().fill(form)


def block_snippet(kind: str, forms: Iterable[str]) -> str:
    """A block with the clauses that it needs."""
    holes = Holes()
    name = f'"{holes.named("what must hold")}"' if kind == "test" else holes.named("name")
    lines = [f"  {holes.fill(form)}" for form in forms]
    return "\n".join([f"{kind} {name} {{", *(lines or ["  $0"]), "}"])
