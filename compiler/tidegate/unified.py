"""What changes in a text, as a unified diff that `patch` and `git apply` take."""

import difflib
from typing import Final

import click

_STYLES: Final = {"---": "white", "+++": "white", "@@ ": "cyan"}  # the first three characters of a row, else
_SIGNS: Final = {"-": "red", "+": "green"}  # the first


def unified_diff(name: str, before: str, after: str) -> str:
    """The change of one file; empty where nothing changes.

    Args:
        name: what both sides are called.
        before: the text as it is.
        after: the text as it would be.
    """
    rows = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _lines(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends a line, or else `patch` would see others."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [last for last in text.split("\n")[-1:] if last]


def for_terminal(diff: str, *, color: bool) -> str:
    """The diff as a terminal shows it: in colour, and nothing in the text that would steer the terminal."""
    rows = (
        "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in row)
        for row in diff.split("\n")
    )
    return "\n".join(_painted(row) if color else row for row in rows)


def _painted(row: str) -> str:
    style = _STYLES.get(row[:3]) or _SIGNS.get(row[:1])
    return click.style(row, fg=style) if style else row
