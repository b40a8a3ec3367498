"""What is wrong with a policy, and where: the record and its JSON; `printed` is its text."""

from dataclasses import dataclass, field, replace
from typing import Literal

from .source import Source, Span

Severity = Literal["error", "warning"]


def page(code: str) -> str:
    """Where a code is explained, relative to the repository; `tidegate check --explain CODE` prints it."""
    return f"docs/errors/{code}.md"


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

    def to_json(self, source: Source) -> dict[str, object]:
        """As JSON values; lines and columns count from 1, bytes of the source from 0, ends are exclusive."""
        byte, end_byte = source.extent(self.span)
        return {
            "code": self.code,
            "page": page(self.code),
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.span.line,
            "column": self.span.column,
            "end_column": self.span.end_column,
            "byte": byte,
            "end_byte": end_byte,
            "notes": list(self.notes),
            "help": self.help,
            "fix": self.fix
            and {
                "title": self.fix.title,
                "edits": [
                    {"byte": start, "end_byte": end, "text": edit.text}
                    for edit in self.fix.edits
                    for start, end in (source.extent(edit.span),)
                ],
            },
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """The diagnostics of one file as they are found; the steps of a check share it and report all, not the first.

    Attributes:
        path: the file.
        items: in the order in which they were found; their lines count from the file's first.
        silenced: warnings that the file allows.
        above: how many lines of the file stand above what is reported on: spans that are given count from there.
    """

    path: str
    items: list[Diagnostic] = field(default_factory=list)
    silenced: list[Diagnostic] = field(default_factory=list)
    above: int = 0

    def below(self, above: int) -> "Findings":
        """The same diagnostics, for who reports on a piece of the file below so many lines."""
        return Findings(self.path, self.items, self.silenced, above)

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
        self._add(Diagnostic(self.path, code, "error", message, span, notes, help, fix))

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
        self._add(Diagnostic(self.path, code, "warning", message, span, notes, help, fix))

    def _add(self, found: Diagnostic) -> None:
        fix = found.fix and Fix(
            found.fix.title,
            tuple(Edit(edit.span.below(self.above), edit.text) for edit in found.fix.edits),
        )
        self.items.append(replace(found, span=found.span.below(self.above), fix=fix))


def replacement(span: Span, text: str) -> Fix:
    """The fix that writes `text` in the place of a span."""
    return Fix(f"write `{text}`" if text else "remove it", (Edit(span, text),))
