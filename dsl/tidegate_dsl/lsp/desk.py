"""The policies that are open in the editor, each checked as it stands on the screen."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate_dsl.check import check_text
from tidegate_dsl.diagnostics import InputError
from tidegate_dsl.editor.document import Document
from tidegate_dsl.editor.text import Encoding, Range, Text
from tidegate_dsl.fleet import Limits, inventory_file, read_fleet, read_limits
from tidegate_dsl.model import Fleet
from tidegate_dsl.syntax import Memory

from .reread import Reread


@dataclass(frozen=True, slots=True)
class Change:
    """Text in the place of a range; of the whole where `range` is None."""

    text: str
    range: Range | None


class Desk:
    """Open documents by URI. Limits and inventories are read again when their files change.

    Args:
        limits: the limits file.

    Raises:
        InputError: it can not be read now. When it breaks later, what it said last counts.
    """

    def __init__(self, limits: Path) -> None:
        self._limits_path = limits
        self._read_limits = Reread(read_limits)
        self._limits = self._read_limits(limits)
        self._fleets = Reread(read_fleet, inventory_file)
        self._documents: dict[str, Document] = {}
        self._memories: dict[str, Memory] = {}

    def open(self, uri: str, path: Path, text: str, encoding: Encoding) -> Document:
        """Check a document that the editor opened."""
        return self._put(uri, path, Text(text, encoding))

    def change(self, uri: str, changes: Iterable[Change]) -> Document:
        """Check a document again behind changes, each made to what the one before it left.

        Raises:
            KeyError: it is not open.
        """
        document = self._documents[uri]
        text = document.text
        for change in changes:
            if change.range is None:
                text = Text(change.text, text.encoding)
            else:
                text = text.replaced(*change.range, change.text)
        return self._put(uri, Path(document.path), text)

    def again(self) -> dict[str, Document]:
        """Check every open document again, for a file that they read has changed."""
        return {
            uri: self._put(uri, Path(document.path), replace(document.text))
            for uri, document in self._documents.items()
        }

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._documents.pop(uri, None)
        self._memories.pop(uri, None)

    def __getitem__(self, uri: str) -> Document:
        """An open document; KeyError where it is not open."""
        return self._documents[uri]

    def _put(self, uri: str, path: Path, text: Text) -> Document:
        limits = self._current_limits()
        memory = self._memories.setdefault(uri, Memory())
        result = check_text(text.text, str(path), limits=limits, fleets=self._fleets, memory=memory)

        def fleet_of(named: str) -> Fleet | None:
            try:
                return self._fleets(path.parent / named)
            except InputError:
                return None

        document = Document(str(path), text, limits, result.diagnostics, fleet_of)
        self._documents[uri] = document
        return document

    def _current_limits(self) -> Limits:
        with suppress(InputError):  # half saved, or moved away for a moment: what it said last still counts
            self._limits = self._read_limits(self._limits_path)
        return self._limits
