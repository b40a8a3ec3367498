"""Files that are whole or not there: bounded reading, and writing aside then renaming."""

import os
import tempfile
from pathlib import Path

from tidegate.errors import Failure


def read_text(path: Path, max_bytes: int) -> str:
    """The UTF-8 text of a file of at most `max_bytes`.

    Raises:
        Failure: missing, unreadable, too large, or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise Failure(f"{path}: larger than {max_bytes} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: not UTF-8 at byte {error.start}") from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by `text`: readers see the old content or the new, also after a crash or on a full disk.

    Raises:
        Failure: the directory or the file cannot be written; what stood there stays.
    """
    aside: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except OSError as error:
        if aside is not None:
            Path(aside).unlink(missing_ok=True)
        raise Failure(
            f"{path}: cannot be written: {error.strerror}", help="what stood there is unchanged"
        ) from error


def remove(path: Path) -> None:
    """Remove a file.

    Raises:
        Failure: it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{path}: cannot be removed: {error.strerror}") from error
