"""Text to tokens and comments. Neither crosses a line; blanks leave nothing."""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from tidegate_dsl.diagnostics import Edit, Findings, Fix, Source, Span

MAX_DIGITS: Final = 18


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    NUMBER = auto()  # with its unit where they stand together: `6h`
    STRING = auto()  # text with its quotes
    LENGTH = auto()  # `/24`
    ADDRESS = auto()  # what looks like an address or prefix
    TIME = auto()  # `2026-12-01` or `2026-12-01T06:00Z`
    PUNCTUATION = auto()  # { } , % and runs of < > = !
    NEWLINE = auto()
    END = auto()
    BROKEN = auto()  # reported already


class Token(NamedTuple):
    """A token and its text as written."""

    kind: Kind
    text: str
    span: Span


class Comment(NamedTuple):
    """A comment from its `#` to the end of its line, without blanks at the end."""

    text: str
    span: Span


class Lexed(NamedTuple):
    """A file's tokens, each line closed by NEWLINE and the file by END, and its comments."""

    tokens: list[Token]
    comments: list[Comment]


class _Piece(NamedTuple):
    """A token or comment (`kind` is None) in its line."""

    kind: Kind | None
    text: str
    column: int
    end_column: int


NUMBER: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?([A-Za-z]+)?")

_PIECE: Final = re.compile(
    r"""(?P<blank>[ \t]+|\r$)
      | (?P<comment>\#.*)
      | (?P<string>"[^"]*"?)
      | (?P<punctuation>[{},%]|[<>=!]+)
      | (?P<atom>[^\s{},%<>=!"\#]+)
      | (?P<stray>.)""",
    re.VERBOSE | re.DOTALL,
)
_ATOMS: Final = (
    (Kind.WORD, re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")),
    (Kind.NUMBER, NUMBER),
    (Kind.TIME, re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}Z)?")),
    (Kind.LENGTH, re.compile(r"/[0-9]{1,3}")),
    (Kind.ADDRESS, re.compile(r"[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*(/[0-9]{0,3})?")),
)
_NEARLY: Final = (  # what looks like something that the language has
    (
        re.compile(r"[0-9]{4}[-/][0-9]{1,2}[-/]"),
        "a time is `2026-12-01` or `2026-12-01T06:00Z`: to the minute, in UTC",
    ),
    (re.compile(r"p[0-9]+\."), "a percentile is a whole number, `p1` to `p99`"),
    (re.compile(r"//|/\*"), "a comment starts with `#`"),
    (re.compile(r".*;"), "a clause ends with its line, without `;`"),
    (re.compile(r"[A-Za-z_][A-Za-z0-9_-]*:\Z"), "no `:` stands behind a word"),
    (
        re.compile(r"[0-9.]*[KMGkmg]?(?:bits?|b|[Bb]ytes?|B)/s"),
        "a rate is in bits per second: `kbps`, `Mbps` or `Gbps`",
    ),
    (
        re.compile(
            "['\N{LEFT SINGLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}"
            "\N{DOUBLE LOW-9 QUOTATION MARK}\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}]"
        ),
        'a string stands between two `"`',
    ),
    (re.compile(r"[A-Za-z]*(/[0-9]+)+\Z"), "a length such as `/24` stands between spaces"),
    (re.compile(r"-[0-9.]"), "numbers have no sign"),
    (re.compile(r"[0-9.]+-[0-9.]+\Z"), "a range is `between N and N`"),
    (re.compile(r"[0-9.]+[A-Za-z]+[0-9]"), "a value is one number with one unit: `90m`"),
    (re.compile(r"&&?\Z"), "`and` joins conditions"),
    (re.compile(r"\*\Z"), "every POP is `all`"),
    (re.compile(r"(?![0-9])[A-Za-z0-9_-]*[./]"), "a path stands in quotes"),
)
_WRITTEN_WITH: Final = (
    "a policy is written in words, numbers, prefixes, strings and the signs `{` `}` `,` `%` `<` `>` `=`"
)
_LINE_FEED: Final = "\n"
_BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


def lex(source: Source, findings: Findings) -> Lexed:
    """All tokens and comments.

    What is no token becomes BROKEN, and the first of a line is reported: the parser leaves its clause in silence.
    """
    lexed = lex_lines(source.lines, 1, findings)
    lexed.tokens.append(end_of(lexed.tokens))
    return lexed


def end_of(tokens: Sequence[Token]) -> Token:
    """The END behind a file's tokens."""
    return Token(Kind.END, "", tokens[-1].span)


def lex_lines(lines: Iterable[str], first: int, findings: Findings) -> Lexed:
    """As `lex` does, the tokens and comments of lines of a file, of which `first` is the first one's number."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    make = tuple.__new__  # a named tuple's own way in takes twice as long, and this is the hot place
    newline = Kind.NEWLINE
    for number, line in enumerate(lines, first):
        pieces = _pieces(line, first=number == 1)
        whole = True
        for kind, text, column, end_column in pieces:
            span = make(Span, (number, column, end_column))
            if kind is None:
                comments.append(Comment(text, span))
                continue
            token = make(Token, (kind, text, span))
            if kind is Kind.BROKEN and whole:  # what follows on the line is mostly the same mistake
                whole = False
                _report(token, _spaces(pieces, number), findings)
            tokens.append(token)
        end = len(line) + 1
        tokens.append(make(Token, (newline, "", make(Span, (number, end, end)))))
    return Lexed(tokens, comments)


@lru_cache(maxsize=16_384)  # where a line is added, those below it are as they were
def _pieces(line: str, *, first: bool) -> tuple[_Piece, ...]:
    """A line's tokens and comments."""
    start = 1 if first and line.startswith(_BYTE_ORDER_MARK) else 0
    pieces: list[_Piece] = []
    for match in _PIECE.finditer(line, start):
        text, column = match.group(), match.start() + 1
        if match.lastgroup == "comment":
            text = text.rstrip()
            pieces.append(_Piece(None, text, column, column + len(text)))
        elif match.lastgroup != "blank":
            pieces.append(_Piece(_kind(match.lastgroup, text), text, column, column + len(text)))
    return tuple(pieces)


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


def _spaces(pieces: tuple[_Piece, ...], number: int) -> Fix:
    """The fix that writes what is meant for everything in the line that only looks like a blank or a line's end."""
    edits = [
        Edit(Span(number, piece.column, piece.end_column), _LINE_FEED if piece.text == "\r" else " ")
        for piece in pieces
        if piece.kind is Kind.BROKEN and piece.text.isspace()
    ]
    ends = any(edit.text == _LINE_FEED for edit in edits)
    return Fix("write a line feed" if ends else "write a space", tuple(edits))


def _report(broken: Token, spaces: Fix, findings: Findings) -> None:
    text, span = broken.text, broken.span
    if text.startswith('"'):
        ended = not text.strip('" {')  # what is left behind a quote that was meant to close
        way_out = 'is its opening `"` missing?' if ended else 'end it with `"` on the same line'
        findings.error("L001", "this string has no closing quote", span, help=way_out)
    elif NUMBER.fullmatch(text):
        way_out = "write it in a larger unit, or with fewer decimals"
        findings.error("L003", f"this number has more than {MAX_DIGITS} digits", span, help=way_out)
    else:
        findings.error(
            "L002",
            f"`{text}` is no word, number, prefix or string",
            span,
            help=_way_out(text),
            fix=spaces if text.isspace() else None,
        )


def _way_out(text: str) -> str:
    if text == "\r":
        return "this is a carriage return alone, and a line ends with a line feed"
    if text.isspace():
        return f"this is U+{ord(text):04X}, not a space; write a space"
    otherwise = _WRITTEN_WITH if text.isascii() else "outside of strings and comments only ASCII is written"
    return next((way_out for pattern, way_out in _NEARLY if pattern.match(text)), otherwise)
