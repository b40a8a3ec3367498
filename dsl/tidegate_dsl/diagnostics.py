"""What is wrong with a policy, and where: the record, its text and its JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal
from unicodedata import category, combining, east_asian_width

from .source import Source, Span

Severity = Literal["error", "warning"]

_TAB: Final = "    "
_RESET: Final = "\x1b[0m"
_STYLES: Final = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "frame": "\x1b[1;34m", "message": "\x1b[1m"}


@dataclass(frozen=True, slots=True)
class Edit:
    """Text to put in the place of a span; an empty span inserts."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that a machine may make because it has one right form.

    Attributes:
        title: what it does, as an order: "write `10 ms`".
        edits: they do not overlap.
    """

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake.

    Attributes:
        path: the policy file, as the user gave it.
        code: one of `codes.CODES`.
        severity: an error refuses the policy, a warning does not.
        message: lower case, no full stop, the user's words in backticks.
        span: what is underlined.
        notes: the cause, one line each.
        help: the way out, or None where the message says it.
        fix: the way out as edits, where there is just one.
    """

    path: str
    code: str
    severity: Severity
    message: str
    span: Span
    notes: tuple[str, ...] = ()
    help: str | None = None
    fix: Fix | None = None

    def to_json(self) -> dict[str, object]:
        """As JSON values; lines and columns count from 1, bytes from 0, ends are exclusive."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.span.line,
            "column": self.span.column,
            "end_column": self.span.end_column,
            "byte": self.span.start,
            "end_byte": self.span.end,
            "notes": list(self.notes),
            "help": self.help,
            "fix": self.fix
            and {
                "title": self.fix.title,
                "edits": [
                    {"byte": edit.span.start, "end_byte": edit.span.end, "text": edit.text}
                    for edit in self.fix.edits
                ],
            },
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """The diagnostics of one file as they are found; the steps of a check share it and report all, not the first."""

    path: str
    items: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[str, ...] = (),
        help: str | None = None,  # noqa: A002 - the word that the user sees
        fix: Fix | None = None,
    ) -> None:
        """Report an error."""
        self.items.append(Diagnostic(self.path, code, "error", message, span, notes, help, fix))

    def warning(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[str, ...] = (),
        help: str | None = None,  # noqa: A002 - the word that the user sees
        fix: Fix | None = None,
    ) -> None:
        """Report what is allowed and probably not meant; an `# allow CODE: reason` in the file silences it."""
        self.items.append(Diagnostic(self.path, code, "warning", message, span, notes, help, fix))


def replacement(span: Span, text: str) -> Fix:
    """The fix that writes `text` in the place of a span."""
    return Fix(f"write `{text}`" if text else "remove it", (Edit(span, text),))


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
    line = source.lines[span.line - 1].rstrip("\r")
    marked = line[span.column - 1 : span.end_column - 1]
    number = str(span.line)
    gutter = " " * len(number)
    bar = paint("frame", "|")
    underline = paint(diagnostic.severity, "^" * max(1, _width(_shown(marked))))
    head = paint(diagnostic.severity, f"{diagnostic.severity}[{diagnostic.code}]")
    rows = [
        f"{head}{paint('message', f': {_shown(diagnostic.message)}')}",
        f"{gutter}{paint('frame', '-->')} {_shown(source.path)}:{span.line}:{span.column}",
        f"{gutter} {bar}",
        f"{paint('frame', number)} {bar} {_shown(line)}".rstrip(),
        f"{gutter} {bar} {' ' * _width(_shown(line[: span.column - 1]))}{underline}",
    ]
    notes = (*diagnostic.notes, *((f"help: {diagnostic.help}",) if diagnostic.help else ()))
    rows += [f"{gutter} {paint('frame', '=')} {_shown(note)}" for note in notes]
    return "\n".join(rows)


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
