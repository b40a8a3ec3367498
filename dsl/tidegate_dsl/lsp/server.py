"""`tidegate lsp`: the protocol's requests and notifications, each answered by one function of `editor`."""

import gc
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.uris import from_fs_path, to_fs_path

from tidegate_dsl.diagnostics import InputError
from tidegate_dsl.editor import names
from tidegate_dsl.editor.actions import actions
from tidegate_dsl.editor.completion import complete
from tidegate_dsl.editor.document import Document
from tidegate_dsl.editor.hover import hover
from tidegate_dsl.editor.outline import folds, symbols
from tidegate_dsl.editor.statements import touches
from tidegate_dsl.fleet import inventory_file
from tidegate_dsl.format import FormatError, format_text

from . import wire
from .desk import Change, Desk

_TRIGGERS: Final = [" ", ",", "%"]


class _Protocol(LanguageServerProtocol):
    """Leaves the texts to the `Desk`: pygls ends lines also at form feeds and at U+2028, which editors do not."""

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(
        self, params: types.DidOpenTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: types.DidCloseTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


def serve(limits: Path) -> None:
    """Serve one editor on standard input and output until it says `exit`.

    Args:
        limits: the limits file.

    Raises:
        InputError: it can not be read.
    """
    server = make_server(Desk(limits))
    # A check makes tens of thousands of small records and no cycles: looking for some among them costs a third more.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    server.start_io()


def make_server(desk: Desk) -> LanguageServer:
    """A server with all of its answers, not yet started."""
    server = LanguageServer("tidegate", version("tidegate"), protocol_cls=_Protocol)
    _serve_texts(server, desk)
    _serve_words(server, desk)
    _serve_names(server, desk)
    _serve_layout(server, desk)
    return server


def _document(desk: Desk, of: types.TextDocumentIdentifier) -> Document:
    try:
        return desk[of.uri]
    except KeyError as error:
        raise JsonRpcInvalidParams(message=f"{of.uri} is not open") from error


def _serve_texts(server: LanguageServer, desk: Desk) -> None:
    """Texts come and go; each version is checked as a whole."""

    def publish(uri: str, document: Document, number: int | None = None) -> None:
        found = [wire.diagnostic(document, each) for each in document.diagnostics]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, number))

    def publish_all(_: types.DidSaveTextDocumentParams | types.DidChangeWatchedFilesParams) -> None:
        for uri, document in desk.again().items():
            publish(uri, document)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        opened = params.text_document
        encoding = server.workspace.position_encoding or "utf-16"
        path = Path(to_fs_path(opened.uri) or "untitled.tide")
        document = desk.open(opened.uri, path, opened.text, wire.ENCODINGS[encoding])
        publish(opened.uri, document, opened.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        changed = params.text_document
        _document(desk, types.TextDocumentIdentifier(changed.uri))
        changes = [
            Change(
                each.text,
                wire.our_range(each.range)
                if isinstance(each, types.TextDocumentContentChangePartial)
                else None,
            )
            for each in params.content_changes
        ]
        publish(changed.uri, desk.change(changed.uri, changes), changed.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        desk.close(params.text_document.uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(publish_all)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(publish_all)


def _serve_words(server: LanguageServer, desk: Desk) -> None:
    """What may stand at the caret, and what the specification says of it."""

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=_TRIGGERS))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        document = _document(desk, params.text_document)
        place = document.text.place(wire.our_position(params.position))
        snippets = wire.takes_snippets(server.client_capabilities)
        return [
            wire.completion(document, item, number, snippets=snippets)
            for number, item in enumerate(complete(document, place))
        ]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(params: types.HoverParams) -> types.Hover | None:
        document = _document(desk, params.text_document)
        found = hover(document, document.text.place(wire.our_position(params.position)))
        if found is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, found.text)
        return types.Hover(content, wire.span_range(document, found.span))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = _document(desk, params.text_document)
        first, last = (document.text.place(each) for each in wire.our_range(params.range))
        return [
            wire.action(params.text_document.uri, document, each)
            for each in actions(document, first.line, last.line)
        ]


def _serve_names(server: LanguageServer, desk: Desk) -> None:
    """Where names are defined and used, and new ones for them."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> list[types.Location]:
        document = _document(desk, params.text_document)
        place = document.text.place(wire.our_position(params.position))
        if document.inventory is not None and touches(document.inventory, place):
            return _inventory(document)
        found = names.occurrence_at(document, place)
        where = names.definitions(document, found.kind, found.name) if found else []
        return [_location(params.text_document.uri, document, each) for each in where]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        document = _document(desk, params.text_document)
        found = names.occurrence_at(document, document.text.place(wire.our_position(params.position)))
        where = names.same(document, found.kind, found.name) if found else []
        return [
            _location(params.text_document.uri, document, each)
            for each in where
            if each.role == "use" or params.context.include_declaration
        ]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        document = _document(desk, params.text_document)
        found = names.occurrence_at(document, document.text.place(wire.our_position(params.position)))
        if found is None:
            return None
        return types.PrepareRenamePlaceholder(wire.span_range(document, found.span), found.name)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit:
        document = _document(desk, params.text_document)
        place = document.text.place(wire.our_position(params.position))
        try:
            spans = names.rename(document, place, params.new_name)
        except names.Refused as refused:
            raise JsonRpcInvalidParams(message=str(refused)) from refused
        edits = [types.TextEdit(wire.span_range(document, span), params.new_name) for span in spans]
        return types.WorkspaceEdit(changes={params.text_document.uri: edits})


def _inventory(document: Document) -> list[types.Location]:
    """The file of the inventory that the policy names."""
    if document.inventory is None:
        return []
    try:
        file = inventory_file(Path(document.path).parent / document.inventory.text[1:-1])
    except InputError:
        return []
    uri = from_fs_path(str(file.resolve()))
    start = types.Position(0, 0)
    return [types.Location(uri, types.Range(start, start))] if uri and file.is_file() else []


def _location(uri: str, document: Document, found: names.Occurrence) -> types.Location:
    return types.Location(uri, wire.span_range(document, found.span))


def _serve_layout(server: LanguageServer, desk: Desk) -> None:
    """The outline, the folds and the canonical layout."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def document_symbol(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = _document(desk, params.text_document)
        return [wire.symbol(document, each) for each in symbols(document)]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = _document(desk, params.text_document)
        try:
            formatted = format_text(document.text.text, document.path)
        except FormatError:  # its mistakes are on the screen already
            return []
        change = document.text.line_change(formatted)
        return [wire.text_edit(*change)] if change else []

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding_range(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        document = _document(desk, params.text_document)
        return [wire.fold(document, each) for each in folds(document)]
