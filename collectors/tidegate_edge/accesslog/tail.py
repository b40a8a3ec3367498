"""One file of the log, read forward by whole lines with bounded memory."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .position import HEAD_BYTES, Position, head_of

MAX_LINE: Final = 4096  # ten times what the format writes
_CHUNK: Final = 1 << 20  # some 2,500 lines: the kernel is asked for their sockets once
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Lines:
    """What one read gave.

    Attributes:
        whole: lines without their newlines.
        too_long: lines that began and were longer than `MAX_LINE`; they are passed over.
        progress: the position moved.
    """

    whole: list[bytes] = field(default_factory=list)
    too_long: int = 0
    progress: bool = False


class Tail:
    """An open file of the log and how far it was read.

    Args:
        path: of a regular file; it is read from its beginning.

    Raises:
        OSError: it can't be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self._fd: Final = os.open(path, _OPEN)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise OSError(0, "not a regular file")
        self.identity: Final = (status.st_dev, status.st_ino)
        self.offset = 0
        self._head = head_of(self._fd, 0)
        self._passing = False  # within a line that is too long

    @property
    def position(self) -> Position:
        """How far it was read."""
        return Position(*self.identity, self.offset, self._head)

    @property
    def size(self) -> int:
        """Of the file, bytes."""
        return os.fstat(self._fd).st_size

    def is_at(self, position: Position) -> bool:
        """Whether the file, or one that this is a copy of, was read up to there."""
        return position.offset <= self.size and head_of(self._fd, position.offset) == position.head

    def was_cut(self) -> bool:
        """Whether what was read is no longer there: the file was truncated, and may have grown again."""
        return not self.is_at(self.position)

    def go_to(self, offset: int) -> None:
        """Read on from a line's first byte."""
        self.offset = offset
        self._head = head_of(self._fd, offset)
        self._passing = False

    def read(self) -> Lines:
        """The next whole lines. A line that has no end yet is read once it has one.

        Nothing is taken of a file that turns out to have been truncated: what was read may be either's.

        Raises:
            OSError: the file can't be read.
        """
        data = os.pread(self._fd, _CHUNK, self.offset)
        *whole, rest = data.split(b"\n")
        passing, too_long = self._passing, 0
        if whole and passing:
            del whole[0]
            passing = False
        kept = [line for line in whole if len(line) <= MAX_LINE]
        too_long += len(whole) - len(kept)
        taken = len(data) - len(rest)
        if len(rest) > MAX_LINE or (passing and rest):
            too_long += not passing
            passing = True
            taken = len(data)
        # From HEAD_BYTES on the head stays the same, or the file is another.
        head = head_of(self._fd, self.offset + taken) if self.offset < HEAD_BYTES else self._head
        if self.was_cut():  # asked last: the truncation may have come between the reads above
            return Lines()
        self._passing, self._head = passing, head
        self.offset += taken
        return Lines(kept, too_long, taken > 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
