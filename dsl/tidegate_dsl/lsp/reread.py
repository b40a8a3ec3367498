"""Files that a long-running program reads again only when they have changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tidegate_dsl.diagnostics import InputError

T = TypeVar("T")
_Stamp = tuple[int, int, int] | None


class Reread(Generic[T]):
    """A reader that keeps what it read until the file's inode, size or time of change is another.

    Args:
        read: reads a file; what it raises as `InputError` is kept and raised likewise.
        file: the file that decides, by the path that is asked for.
    """

    def __init__(self, read: Callable[[Path], T], file: Callable[[Path], Path] = Path) -> None:
        self._read = read
        self._file = file
        self._kept: dict[Path, tuple[_Stamp, T | InputError]] = {}

    def __call__(self, path: Path) -> T:
        """What the file says now.

        Raises:
            InputError: as `read` does.
        """
        stamp = self._stamp(path)
        kept = self._kept.get(path)
        if kept is None or kept[0] != stamp or stamp is None:
            answer = self._answer(path)
            # What is saved as it was stays the same object, which is told from another one at once.
            kept = (stamp, kept[1] if kept is not None and kept[1] == answer else answer)
            self._kept[path] = kept
        if isinstance(kept[1], InputError):
            raise kept[1]
        return kept[1]

    def _answer(self, path: Path) -> T | InputError:
        try:
            return self._read(path)
        except InputError as error:
            return error

    def _stamp(self, path: Path) -> _Stamp:
        """What changes with the file; None where there is none."""
        try:
            status = self._file(path).stat()
        except (OSError, ValueError, InputError):
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns
