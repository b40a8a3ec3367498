"""Where the rows of a poll go: a file, or standard output."""

import fcntl
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.sockets.decode import Rows

from .form import Buffer, Form


class Sink(Protocol):
    """Takes the rows of one poll after the other."""

    def write(self, batches: Iterable[Rows]) -> None:
        """Write all rows of a poll, or raise a Failure."""

    def close(self) -> None:
        """Let go of what was opened."""


class FileSink:
    """A file that rows are appended to, by one writer at a time. It never keeps part of a row.

    Args:
        path: created if missing. A row that a crash left cut at its end is removed; `removed` is its bytes.
        form: how rows are encoded.

    Raises:
        Failure: the file can't be opened, holds something else than rows of this form, or has another writer.
    """

    def __init__(self, path: Path, form: Form) -> None:
        self._path: Final = path
        self._form: Final = form
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
        try:
            self.removed = self._make_ours()
        except Failure:
            os.close(self._fd)
            raise

    def write(self, batches: Iterable[Rows]) -> None:
        """Append the rows; where that fails, cut the file back to what it was.

        Raises:
            Failure: the rows could not be written, mostly for lack of space; none of them are in the file.
        """
        before = os.fstat(self._fd).st_size
        try:
            for rows in batches:
                _write_all(self._fd, self._form.encode(rows))
        except OSError as error:
            os.ftruncate(self._fd, before)
            what = f"{self._path}: {error.strerror}; cut back to the {before} bytes before this poll"
            raise Failure(what, exit_code=MISSING_PART) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _make_ours(self) -> int:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = os.fstat(self._fd).st_size
            whole = self._form.whole_length(self._fd, size)
            if whole < size:
                os.ftruncate(self._fd, whole)
        except BlockingIOError as error:
            raise Failure(f"{self._path}: another collector writes to it") from error
        except OSError as error:
            way_out = "write to standard output instead"
            raise Failure(
                f"{self._path}: no file that can be appended to: {error.strerror}", help=way_out
            ) from error
        except ValueError as error:
            way_out = "name another file; this one was left as it is"
            raise Failure(f"{self._path}: {error.args[0]}", help=way_out) from error
        return size - whole


class StreamSink:
    """Standard output.

    Args:
        form: how rows are encoded.

    Raises:
        Failure: it is a terminal, and the form is not for people.
    """

    def __init__(self, form: Form) -> None:
        self._form: Final = form
        self._fd: Final = sys.stdout.fileno()
        if os.isatty(self._fd) and not form.for_people:
            raise Failure(
                "protobuf is not for a terminal", help="ask for `--json`, or name a file with `--out`"
            )

    def write(self, batches: Iterable[Rows]) -> None:
        """Write the rows.

        Raises:
            Failure: the reader does not take them; what it has got may end within a row.
        """
        try:
            for rows in batches:
                _write_all(self._fd, self._form.encode(rows))
        except OSError as error:
            raise Failure(f"standard output: {error.strerror}", exit_code=MISSING_PART) from error

    def close(self) -> None:
        """Leave standard output open: it is not ours."""


def _write_all(fd: int, data: Buffer) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
