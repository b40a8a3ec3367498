"""How far each file of the log was read: kept beside it, written aside and renamed."""

import fcntl
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tidegate_edge.errors import MISSING_PART, Failure

HEAD_BYTES: Final = 256
_SCHEMA_VERSION: Final = 1
_MAX_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Position:
    """How far one file was read.

    Attributes:
        device: of the file.
        inode: of the file.
        offset: of the first line not delivered yet, bytes.
        head: `head_of` what was read; it tells the file from another that got its inode, and tells its copy.
    """

    device: int
    inode: int
    offset: int
    head: str


def head_of(fd: int, offset: int) -> str:
    """Digest of a file's first bytes, `HEAD_BYTES` at most and none behind `offset`."""
    return hashlib.sha256(os.pread(fd, min(offset, HEAD_BYTES), 0)).hexdigest()[:32]


class Positions:
    """The file that keeps the positions of one log. It is locked: one collector reads a log into one state.

    Args:
        directory: made if missing.
        log: the access log's path.

    Raises:
        Failure: it can't be opened, or another collector has it.
    """

    def __init__(self, directory: Path, log: Path) -> None:
        name = hashlib.sha256(os.fsencode(log.absolute())).hexdigest()[:16]
        self._path: Final = directory / f"accesslog-{name}.json"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = self._path.with_suffix(".lock")
            self._lock: Final = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Failure(f"{log}: another collector reads it with this state directory") from error
        except OSError as error:
            raise Failure(f"{directory}: {error.strerror}", help="name another with `--state-dir`") from error

    def load(self) -> tuple[Position, ...]:
        """The positions, oldest file first; none where nothing was read yet.

        Raises:
            Failure: the file is damaged.
        """
        try:
            with self._path.open("rb") as file:
                return _positions(json.loads(file.read(_MAX_BYTES)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Failure(f"{self._path}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            way_out = "remove it: the log is then read from its beginning, and rows are delivered again"
            raise Failure(f"{self._path}: damaged", help=way_out) from error

    def save(self, files: Sequence[Position]) -> None:
        """Keep these, or what was before.

        Raises:
            Failure: they can't be written.
        """
        document = {"schema_version": _SCHEMA_VERSION, "files": [asdict(each) for each in files]}
        aside = self._path.with_suffix(".new")
        try:
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump(document, file)
                file.flush()
                os.fsync(fd)
            aside.replace(self._path)
        except OSError as error:
            raise Failure(f"{self._path}: {error.strerror}", exit_code=MISSING_PART) from error

    def close(self) -> None:
        """Let another collector have it."""
        os.close(self._lock)


def _positions(document: dict[str, Any]) -> tuple[Position, ...]:
    if document["schema_version"] != _SCHEMA_VERSION:
        raise ValueError
    return tuple(_position(each) for each in document["files"])


def _position(found: dict[str, object]) -> Position:
    device, inode, offset, head = (found[name] for name in ("device", "inode", "offset", "head"))
    numbers = (device, inode, offset)
    if not isinstance(head, str) or not all(type(each) is int and each >= 0 for each in numbers):
        raise ValueError
    return Position(*numbers, head)  # type: ignore[arg-type] # checked in the line before
