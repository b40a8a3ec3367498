"""Lines as text: a table as wide as it needs to be, or cut to a terminal's width and height."""

from collections.abc import Callable, Sequence
from typing import Final

from .ranking import Line

# ECMA-48: cursor to the upper left, erase to the end of the line, erase what is below.
HOME: Final = "\x1b[H"
REST_OF_LINE: Final = "\x1b[K"
BELOW: Final = "\x1b[J"


def scaled(number: float) -> str:
    """A number for people, in steps of 1000: `12.3M`."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000:
            return f"{number:.0f}" if unit == "" else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.1f}T"


# Title, and how a line shows it; the first two are text and stand to the left.
_COLUMNS: Final[tuple[tuple[str, Callable[[Line], str]], ...]] = (
    ("REMOTE", lambda line: line.remote),
    ("ALGO", lambda line: printable(line.algorithm)),
    ("SOCKETS", lambda line: str(line.sockets)),
    ("BYTES", lambda line: scaled(line.bytes)),
    ("BYTES/S", lambda line: scaled(line.rate)),
    ("CWND", lambda line: str(line.cwnd)),
    ("RTT MS", lambda line: f"{line.rtt_ms:.1f}"),
    ("DELIVERY/S", lambda line: scaled(line.delivery_rate)),
    ("RETRANS %", lambda line: f"{100 * line.retransmitted:.2f}"),
)


def printable(text: str) -> str:
    """Text of the kernel without what a terminal would obey."""
    return "".join(each if each.isprintable() else "?" for each in text)


def table(lines: Sequence[Line]) -> list[str]:
    """A title and a line of text for each line."""
    cells = [[title for title, _ in _COLUMNS], *([show(line) for _, show in _COLUMNS] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def screen(head: str, lines: Sequence[Line], columns: int, rows: int) -> str:
    """One screen that overwrites the one before without a flicker."""
    text = [head, *table(lines)][: max(rows - 1, 1)]
    return HOME + "".join(f"{line[:columns]}{REST_OF_LINE}\n" for line in text) + BELOW
