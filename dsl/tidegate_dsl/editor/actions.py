"""What an editor offers to do about a diagnostic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidegate_dsl.diagnostics import Diagnostic, Edit, Span

from .document import Document

_UNUSED_ALLOW: Final = "W111"


@dataclass(frozen=True, slots=True)
class Action:
    """A change that an author may take.

    Attributes:
        title: what it does, as an order.
        diagnostic: what it answers.
        edits: they do not overlap.
        preferred: it is the one right way out.
    """

    title: str
    diagnostic: Diagnostic
    edits: tuple[Edit, ...]
    preferred: bool


def actions(document: Document, first_line: int, last_line: int) -> list[Action]:
    """The actions for diagnostics on some lines, counted from 1."""
    found = [each for each in document.diagnostics if first_line <= each.span.line <= last_line]
    return [*_fixes(found), *(_silence(document, each) for each in found if _silenceable(each))]


def _silenceable(found: Diagnostic) -> bool:
    """Whether a comment is the way out; of a comment that silences nothing it is not."""
    return found.severity == "warning" and found.code != _UNUSED_ALLOW


def _fixes(found: Iterable[Diagnostic]) -> Iterable[Action]:
    for each in found:
        if each.fix is not None:
            title = each.fix.title[:1].upper() + each.fix.title[1:]
            yield Action(title, each, each.fix.edits, preferred=True)


def _silence(document: Document, warning: Diagnostic) -> Action:
    """`# allow CODE: reason` behind the line, or before it where a comment stands already."""
    number = warning.span.line
    line = document.source.lines[number - 1].rstrip()
    allow = f"# allow {warning.code}: reason"
    if any(comment.span.line == number for comment in document.comments):
        indent = line[: len(line) - len(line.lstrip())]
        edit = Edit(Span(number, 1, 1), f"{indent}{allow}\n")
    else:
        edit = Edit(Span(number, len(line) + 1, len(line) + 1), f"  {allow}")
    return Action(f"Silence with `{allow}`", warning, (edit,), preferred=False)
