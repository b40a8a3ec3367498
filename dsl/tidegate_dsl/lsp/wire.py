"""Answers of `editor` as the protocol's types, and its ranges as ours."""

from collections.abc import Iterable
from typing import Final

from lsprotocol import types

from tidegate_dsl.diagnostics import Diagnostic, Edit, Span
from tidegate_dsl.editor.actions import Action
from tidegate_dsl.editor.completion import Item
from tidegate_dsl.editor.document import Document
from tidegate_dsl.editor.outline import Fold, Symbol
from tidegate_dsl.editor.text import Encoding, Place, Position, Range

_SEVERITIES: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}
_ITEM_KINDS: Final = {
    "keyword": types.CompletionItemKind.Keyword,
    "clause": types.CompletionItemKind.Keyword,
    "block": types.CompletionItemKind.Class,
    "metric": types.CompletionItemKind.Field,
    "pop": types.CompletionItemKind.Constant,
    "group": types.CompletionItemKind.Enum,
    "name": types.CompletionItemKind.Reference,
    "value": types.CompletionItemKind.Value,
    "unit": types.CompletionItemKind.Unit,
}
_SYMBOL_KINDS: Final = {
    "select": types.SymbolKind.Class,
    "apply": types.SymbolKind.Function,
    "learn": types.SymbolKind.Function,
    "initcwnd": types.SymbolKind.Constant,
    "guard": types.SymbolKind.Event,
    "experiment": types.SymbolKind.Event,
    "test": types.SymbolKind.Method,
    "clause": types.SymbolKind.Property,
}

ENCODINGS: Final[dict[str, Encoding]] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}


def takes_snippets(client: types.ClientCapabilities) -> bool:
    """Whether the editor knows snippets."""
    completion = client.text_document.completion if client.text_document else None
    item = completion.completion_item if completion else None
    return bool(item and item.snippet_support)


def our_range(found: types.Range) -> Range:
    """A range of the protocol."""
    return Range(our_position(found.start), our_position(found.end))


def our_position(found: types.Position) -> Position:
    """A position of the protocol."""
    return Position(found.line, found.character)


def span_range(document: Document, span: Span) -> types.Range:
    """Where a span is in the editor."""
    return _range(document.text.range(span))


def diagnostic(document: Document, found: Diagnostic) -> types.Diagnostic:
    """A diagnostic; its notes and its help follow the message."""
    said = [found.message, *found.notes, *([f"help: {found.help}"] if found.help else [])]
    return types.Diagnostic(
        range=span_range(document, found.span),
        message="\n".join(said),
        severity=_SEVERITIES[found.severity],
        code=found.code,
        source="tidegate",
    )


def completion(document: Document, item: Item, number: int, *, snippets: bool) -> types.CompletionItem:
    """A proposal, `number` in its list; without snippets a clause is its first word."""
    text, kind = item.label.split()[0], types.InsertTextFormat.PlainText
    if item.snippet is not None and snippets:
        text, kind = item.snippet, types.InsertTextFormat.Snippet
    return types.CompletionItem(
        label=item.label,
        kind=_ITEM_KINDS[item.kind],
        detail=item.detail or None,
        documentation=item.meaning or None,
        sort_text=f"{number:04}",
        insert_text_format=kind,
        insert_text_mode=types.InsertTextMode.AdjustIndentation,
        text_edit=types.TextEdit(span_range(document, item.span), text),
    )


def edits(document: Document, made: Iterable[Edit]) -> list[types.TextEdit]:
    """Edits of a document."""
    return [types.TextEdit(span_range(document, edit.span), edit.text) for edit in made]


def text_edit(where: Range, text: str) -> types.TextEdit:
    """Text for a range."""
    return types.TextEdit(_range(where), text)


def action(uri: str, document: Document, found: Action) -> types.CodeAction:
    """A quick fix."""
    return types.CodeAction(
        title=found.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic(document, found.diagnostic)],
        is_preferred=found.preferred,
        edit=types.WorkspaceEdit(changes={uri: list(edits(document, found.edits))}),
    )


def symbol(document: Document, found: Symbol) -> types.DocumentSymbol:
    """A block of the outline."""
    return types.DocumentSymbol(
        name=found.name,
        kind=_SYMBOL_KINDS[found.kind],
        detail=found.detail,
        range=_between(document, found.start, found.end),
        selection_range=_between(document, found.name_start, found.name_end),
        children=[symbol(document, child) for child in found.children],
    )


def fold(document: Document, found: Fold) -> types.FoldingRange:
    """Lines that can be folded."""
    return types.FoldingRange(
        start_line=document.text.at(Place(found.first_line, 1)).line,
        end_line=document.text.at(Place(found.last_line, 1)).line,
        kind=types.FoldingRangeKind.Comment if found.comment else types.FoldingRangeKind.Region,
    )


def _between(document: Document, start: Place, end: Place) -> types.Range:
    return _range(Range(document.text.at(start), document.text.at(end)))


def _range(found: Range) -> types.Range:
    return types.Range(types.Position(*found.start), types.Position(*found.end))
