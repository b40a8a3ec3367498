"""Text to tokens. A token never crosses a line; blanks and comments leave none."""

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from .diagnostics import Findings
from .source import Source, Span, utf8

MAX_DIGITS: Final = 18


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    NUMBER = auto()  # with its unit where they stand together: `6h`
    STRING = auto()  # text with its quotes
    LENGTH = auto()  # `/24`
    ADDRESS = auto()  # what looks like an address or prefix
    PUNCTUATION = auto()  # { } , % and runs of < > = !
    NEWLINE = auto()
    END = auto()
    BROKEN = auto()  # reported already


class Token(NamedTuple):
    """A token and its text as written."""

    kind: Kind
    text: str
    span: Span


NUMBER: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?([A-Za-z]+)?")

_PIECE: Final = re.compile(
    r"""(?P<blank>[ \t]+|\r$|\#.*)
      | (?P<string>"[^"]*"?)
      | (?P<punctuation>[{},%]|[<>=!]+)
      | (?P<atom>[^\s{},%<>=!"\#]+)
      | (?P<stray>.)""",
    re.VERBOSE | re.DOTALL,
)
_ATOMS: Final = (
    (Kind.WORD, re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")),
    (Kind.NUMBER, NUMBER),
    (Kind.LENGTH, re.compile(r"/[0-9]{1,3}")),
    (Kind.ADDRESS, re.compile(r"[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*(/[0-9]{0,3})?")),
)
_BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


def lex(source: Source, findings: Findings) -> list[Token]:
    """All tokens, each line closed by NEWLINE and the file by END.

    What is no token becomes BROKEN, and the first of a line is reported: the parser leaves its clause in silence.
    """
    tokens: list[Token] = []
    byte = 0
    for number, line in enumerate(source.lines, 1):
        whole = True
        start = 1 if number == 1 and line.startswith(_BYTE_ORDER_MARK) else 0
        byte += len(utf8(line[:start]))
        for piece in _PIECE.finditer(line, start):  # the pieces touch: each starts where the last one ended
            text = piece.group()
            end = byte + (len(text) if text.isascii() else len(utf8(text)))
            if piece.lastgroup != "blank":
                kind = _kind(piece.lastgroup, text)
                token = Token(kind, text, Span(byte, end, number, piece.start() + 1, piece.end() + 1))
                if kind is Kind.BROKEN and whole:  # what follows on the line is mostly the same mistake
                    whole = False
                    _report(token, findings)
                tokens.append(token)
            byte = end
        tokens.append(Token(Kind.NEWLINE, "", Span(byte, byte, number, len(line) + 1, len(line) + 1)))
        byte += 1
    tokens.append(Token(Kind.END, "", tokens[-1].span))
    return tokens


def _kind(group: str | None, text: str) -> Kind:
    if group == "punctuation":
        return Kind.PUNCTUATION
    if group == "string":
        return Kind.STRING if len(text) > 1 and text.endswith('"') else Kind.BROKEN
    for kind, pattern in _ATOMS:
        if pattern.fullmatch(text):
            return Kind.BROKEN if kind is Kind.NUMBER and _digits(text) > MAX_DIGITS else kind
    return Kind.BROKEN


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))


def _report(broken: Token, findings: Findings) -> None:
    text, span = broken.text, broken.span
    if text.startswith('"'):
        findings.error(
            "L001", "this string has no closing quote", span, help='end it with `"` on the same line'
        )
    elif NUMBER.fullmatch(text):
        findings.error("L003", f"this number has more than {MAX_DIGITS} digits", span)
    else:
        findings.error("L002", f"`{text}` is no word, number, prefix or string", span, help=_way_out(text))


def _way_out(text: str) -> str | None:
    if text.isspace():
        return f"this is U+{ord(text):04X}, not a space; write a space"
    if text.startswith("-"):
        return "numbers have no sign"
    if not text.isascii():
        return "outside of strings and comments only ASCII is written"
    return None
