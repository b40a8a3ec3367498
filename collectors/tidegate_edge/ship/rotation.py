"""A file of rows that takes a bounded part of the disk: when it is full it is put aside, over the one before."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.sockets.decode import Rows

from .form import Form
from .sink import FileSink


class RotatedFile:
    """A file, and beside it under the suffix `.1` the one before: never more than two of `max_bytes` and a batch.

    Args:
        path: as `FileSink` takes it.
        form: how rows are encoded.
        max_bytes: a file that has so many is full.
        tell: gets a line when rows are removed to make room.

    Raises:
        Failure: as of `FileSink`.
    """

    def __init__(self, path: Path, form: Form, max_bytes: int, tell: Callable[[str], None]) -> None:
        self._path: Final = path
        self._form: Final = form
        self._max_bytes: Final = max_bytes
        self._tell: Final = tell
        self._file = FileSink(path, form)
        if self._file.removed:
            tell(f"{path}: removed {self._file.removed} bytes of a row that was cut at its end")

    def write(self, batches: Iterable[Rows]) -> None:
        """Append the rows, each batch to one file.

        Raises:
            Failure: as of `FileSink.write`, or the full file can't be put aside.
        """
        for rows in batches:
            if self._file.size >= self._max_bytes:
                self._put_aside()
            self._file.write([rows])

    def sync(self) -> None:
        """Have the disk keep what was written."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _put_aside(self) -> None:
        aside = self._path.with_name(f"{self._path.name}.1")
        self._file.close()
        try:
            if aside.exists():
                self._tell(
                    f"{aside}: {aside.stat().st_size} bytes of rows removed: {self._path} is full again"
                )
            self._path.replace(aside)
        except OSError as error:
            raise Failure(f"{aside}: {error.strerror}", exit_code=MISSING_PART) from error
        self._file = FileSink(self._path, self._form)
