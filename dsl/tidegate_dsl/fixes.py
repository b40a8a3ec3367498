"""Fixes made: the edits of diagnostics put into a policy's text."""

from collections.abc import Iterable

from .diagnostics import Diagnostic, Edit
from .source import utf8


def applicable(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics whose fixes can be made together, in the order of the file.

    Of two fixes that change the same place the first one stays; check again behind it, and the other comes next.
    """
    chosen: list[Diagnostic] = []
    taken: list[Edit] = []
    for diagnostic in sorted(diagnostics, key=lambda found: found.span.start):
        edits = diagnostic.fix.edits if diagnostic.fix else ()
        if edits and not any(_meet(edit, other) for edit in edits for other in taken):
            chosen.append(diagnostic)
            taken += edits
    return tuple(chosen)


def apply_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> str:
    """The text with every fix that `applicable` chooses; it is not checked again.

    Args:
        text: the policy's text that was checked.
        diagnostics: what the check said of it.
    """
    edits = [edit for found in applicable(diagnostics) if found.fix for edit in found.fix.edits]
    data = utf8(text)
    for edit in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
        data = data[: edit.span.start] + utf8(edit.text) + data[edit.span.end :]
    return data.decode("utf-8", "surrogatepass")


def _meet(one: Edit, other: Edit) -> bool:
    """Whether two edits share a byte, or an insertion touches the other: then their order would matter."""
    first, second = sorted((one.span, other.span))
    empty = first.start == first.end or second.start == second.end
    return second.start < first.end or (empty and second.start == first.end)
