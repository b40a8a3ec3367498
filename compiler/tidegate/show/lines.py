"""Single lines of text, whatever the terminal's width."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text


def line(console: Console, style: str, text: str) -> None:
    """One line in one style; it is never wrapped, so that it can be searched and cut."""
    console.print(Text(text, style=style), soft_wrap=True)


def names(values: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{value}`" for value in values]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
