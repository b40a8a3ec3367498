"""Fixes made: the edits of diagnostics put into a policy's text."""

from collections.abc import Iterable

from .report import Diagnostic
from .source import Source, utf8


def applicable(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics whose fixes can be made together, in the order of the file.

    Of two fixes that change the same place the first one stays; check again behind it, and the other comes next.

    Args:
        text: the policy's text that was checked.
        diagnostics: what the check said of it.
    """
    return _chosen(Source("", text), diagnostics)


def _chosen(source: Source, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    chosen: list[Diagnostic] = []
    taken: list[tuple[int, int]] = []
    for diagnostic in sorted(diagnostics, key=lambda found: found.span.start):
        extents = [source.extent(edit.span) for edit in (diagnostic.fix.edits if diagnostic.fix else ())]
        if extents and not any(_meet(one, other) for one in extents for other in taken):
            chosen.append(diagnostic)
            taken += extents
    return tuple(chosen)


def apply_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> str:
    """The text with every fix that `applicable` chooses; it is not checked again.

    Args:
        text: the policy's text that was checked.
        diagnostics: what the check said of it.
    """
    source = Source("", text)
    edits = [edit for found in _chosen(source, diagnostics) if found.fix for edit in found.fix.edits]
    data = source.data
    for edit in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
        start, end = source.extent(edit.span)
        data = data[:start] + utf8(edit.text) + data[end:]
    return data.decode("utf-8", "surrogatepass")


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two edits share a byte, or an insertion touches the other: then their order would matter."""
    (start, end), (next_start, next_end) = sorted((one, other))
    empty = start == end or next_start == next_end
    return next_start < end or (empty and next_start == end)
