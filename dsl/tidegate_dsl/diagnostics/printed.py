"""Diagnostics as text: each with its source line, the place underlined, cause and way out below."""

from collections.abc import Iterable
from typing import Final
from unicodedata import category, combining, east_asian_width

from .report import Diagnostic
from .source import Source, Span

_TAB: Final = "    "
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"
_LONGEST_LINE: Final = 200  # characters of a source line; of a longer one this many are shown
_AROUND: Final = 60  # of them before the underline
_LONGEST_MESSAGE: Final = 600
_RESET: Final = "\x1b[0m"
_STYLES: Final = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "frame": "\x1b[1;34m", "message": "\x1b[1m"}


def render(source: Source, diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """All diagnostics of one file as text, an empty line between two and none at the end."""
    return "\n\n".join(_render_one(source, diagnostic, color=color) for diagnostic in diagnostics)


def summary(results: Iterable[tuple[str, Iterable[Diagnostic]]]) -> str:
    """One line for all files: `checked 2 files: 3 errors, 1 warning`, or `edge.tide: no errors` for one.

    Args:
        results: each file's path and diagnostics.
    """
    files = [(path, list(diagnostics)) for path, diagnostics in results]
    severities = [diagnostic.severity for _, diagnostics in files for diagnostic in diagnostics]
    errors, warnings = severities.count("error"), severities.count("warning")
    said = _count(errors, "error") if errors else "no errors"
    if warnings:
        said += f", {_count(warnings, 'warning')}"
    return f"{files[0][0]}: {said}" if len(files) == 1 else f"checked {_count(len(files), 'file')}: {said}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _render_one(source: Source, diagnostic: Diagnostic, *, color: bool) -> str:
    def paint(style: str, text: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if color else text

    span = diagnostic.span
    before, marked, behind = _window(source.lines[span.line - 1].rstrip("\r"), span)
    number = str(span.line)
    gutter = " " * len(number)
    bar = paint("frame", "|")
    underline = paint(diagnostic.severity, "^" * max(1, _width(marked)))
    head = paint(diagnostic.severity, f"{diagnostic.severity}[{diagnostic.code}]")
    rows = [
        f"{head}{paint('message', f': {_brief(diagnostic.message)}')}",
        f"{gutter}{paint('frame', '-->')} {_shown(source.path)}:{span.line}:{span.column}",
        f"{gutter} {bar}",
        f"{paint('frame', number)} {bar} {before}{marked}{behind}".rstrip(),
        f"{gutter} {bar} {' ' * _width(before)}{underline}",
    ]
    notes = (*diagnostic.notes, *((f"help: {diagnostic.help}",) if diagnostic.help else ()))
    rows += [f"{gutter} {paint('frame', '=')} {_brief(note)}" for note in notes]
    return "\n".join(rows)


def _window(line: str, span: Span) -> tuple[str, str, str]:
    """What is shown of a line before, above and behind the underline; of a long line what stands around it."""
    start, end = span.column - 1, span.end_column - 1
    left, right = 0, len(line)
    if len(line) > _LONGEST_LINE:
        left = max(0, min(start - _AROUND, len(line) - _LONGEST_LINE))
        right = min(len(line), left + _LONGEST_LINE)
        end = min(end, right)
    before, behind = _shown(line[left:start]), _shown(line[end:right])
    cut = f"{_CUT}{before}" if left else before
    return cut, _shown(line[start:end]), f"{behind}{_CUT}" if right < len(line) else behind


def _brief(text: str) -> str:
    """A message or note; what quotes a word of a thousand letters is cut in its middle."""
    half = _LONGEST_MESSAGE // 2
    return _shown(text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]}{_CUT}{text[-half:]}")


def _shown(text: str) -> str:
    """`text` with tabs as blanks and without what would steer the terminal or can not be written in UTF-8."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _TAB
        if character == "\t"
        else "\N{REPLACEMENT CHARACTER}"
        if category(character)[0] == "C"
        else character
        for character in text
    )


def _width(text: str) -> int:
    """Columns of a terminal (Unicode Standard Annex 11: wide and full-width characters take two)."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
