"""Where the rows of a poll go: a file, or standard output."""

import fcntl
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.sockets.decode import Rows

from .form import Buffer, Form

# Without O_NONBLOCK, a named pipe or a serial line could hold the collector before it is seen to be no file.
_OPEN: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_WAY_OUT: Final = "write to standard output instead"


class Sink(Protocol):
    """Takes the rows of one poll after the other."""

    def write(self, batches: Iterable[Rows]) -> None:
        """Write all rows of a poll, a batch when the one before is written; or raise a Failure."""

    def sync(self) -> None:
        """Have the disk keep what was written, where there is one; or raise a Failure."""

    def close(self) -> None:
        """Let go of what was opened."""


class FileSink:
    """A regular file that rows are appended to, by one writer at a time. It never keeps part of a row.

    Args:
        path: created if missing. A row that a crash left cut at its end is removed; `removed` is its bytes.
        form: how rows are encoded.

    Raises:
        Failure: the file can't be opened, is a pipe or a device, holds something else than rows of this form,
            or has another writer.
    """

    def __init__(self, path: Path, form: Form) -> None:
        self._path: Final = path
        self._form: Final = form
        try:
            self._fd = os.open(path, _OPEN, 0o644)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
        try:
            self.removed = self._make_ours()
        except Failure:
            os.close(self._fd)
            raise

    def write(self, batches: Iterable[Rows]) -> None:
        """Append the rows; where that fails, cut the file back to the batches before.

        Raises:
            Failure: a batch could not be written, mostly for lack of space; none of it is in the file, unless the
                message says that it could not be cut back.
        """
        before = os.fstat(self._fd).st_size
        for rows in batches:
            data = self._form.encode(rows)
            try:
                _write_all(self._fd, data)
            except OSError as error:
                what = f"{self._path}: {error.strerror}; {self._cut_back(before)}"
                raise Failure(what, exit_code=MISSING_PART) from error
            before += memoryview(data).nbytes

    @property
    def size(self) -> int:
        """Of the file, bytes."""
        return os.fstat(self._fd).st_size

    def sync(self) -> None:
        """Have the disk keep what was written.

        Raises:
            Failure: it refuses.
        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise Failure(f"{self._path}: {error.strerror}", exit_code=MISSING_PART) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _cut_back(self, size: int) -> str:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            return f"it may end within a row, for it could not be cut back to {size} bytes: {error.strerror}"
        return f"cut back to the {size} bytes before these rows"

    def _make_ours(self) -> int:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            # What a pipe's reader has not taken is lost when it is closed, and a device can't be cut back.
            raise Failure(f"{self._path}: not a regular file", help=_WAY_OUT)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = os.fstat(self._fd).st_size
            whole = self._form.whole_length(self._fd, size)
            if whole < size:
                os.ftruncate(self._fd, whole)
        except BlockingIOError as error:
            raise Failure(f"{self._path}: another collector writes to it") from error
        except OSError as error:
            what = f"{self._path}: no file that can be appended to: {error.strerror}"
            raise Failure(what, help=_WAY_OUT) from error
        except ValueError as error:
            way_out = "name another file; this one was left as it is"
            raise Failure(f"{self._path}: {error.args[0]}", help=way_out) from error
        return size - whole


class StreamSink:
    """Standard output.

    Args:
        form: how rows are encoded.

    Raises:
        Failure: it is closed, or it is a terminal and the form is not for people.
    """

    def __init__(self, form: Form) -> None:
        if sys.stdout is None:  # so Python starts where descriptor 1 is closed
            raise Failure(
                "standard output is closed",
                help="open it, or name a file with `--out`",
                exit_code=MISSING_PART,
            )
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

    def sync(self) -> None:
        """Nothing: what the reader does with the rows is its own."""

    def close(self) -> None:
        """Leave standard output open: it is not ours."""


def _write_all(fd: int, data: Buffer) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
