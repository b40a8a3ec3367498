"""Files that are there whole or not at all, also after a crash."""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

_FORBIDDEN: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, slots=True)
class Staged:
    """A file's next content, on the disk beside it."""

    path: Path
    aside: Path

    def commit(self) -> None:
        """Put it in place: a reader sees the old content or the new.

        Raises:
            Failure: the directory can't be written; the old content stays.
        """
        try:
            self.aside.replace(self.path)
            _sync(self.path.parent)
        except OSError as error:
            self.drop()
            raise cannot_write(self.path, error) from error

    def drop(self) -> None:
        """Forget it; what can't be removed is overwritten the next time."""
        with suppress(OSError):
            self.aside.unlink(missing_ok=True)


def stage(path: Path, content: bytes, mode: int) -> Staged:
    """Write a file's next content aside and sync it: that the disk has room is known from then on.

    Raises:
        Failure: the directory can't be written, and nothing is left there.
    """
    staged = Staged(path, path.with_name(f".{path.name}.new"))
    try:
        with staged.aside.open("wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        staged.drop()
        raise cannot_write(path, error) from error
    return staged


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Stage and commit.

    Raises:
        Failure: the directory can't be written; the old content stays.
    """
    stage(path, content, mode).commit()


def cannot_write(path: Path, error: OSError) -> Failure:
    """The failure that says so, and the way out where there is one."""
    way_out = "the state directory must be writable (--state-dir)" if error.errno in _FORBIDDEN else None
    return Failure(f"{path}: {error.strerror}", help=way_out, exit_code=MISSING_PART)


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
