"""How far a spool was acknowledged, on disk."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# One sector, overwritten in place: it needs no space on a full disk, and neither kill -9 nor power loss cuts it.
_LENGTH: Final = 512


@dataclass(frozen=True, slots=True)
class Position:
    """Everything before it was acknowledged or dropped.

    Attributes:
        spool: random name of this spool; with a row's number it names the row for ever.
        segment: number of the file.
        offset: in it, bytes.
        acknowledged: rows, since the spool was made.
        offered: rows, since the spool was made; more when a frame on disk has a higher number.
    """

    spool: str
    segment: int = 0
    offset: int = 0
    acknowledged: int = 0
    offered: int = 0


class PositionFile:
    """The position, in a file of constant length.

    Args:
        path: created if missing.

    Raises:
        OSError: it can't be opened, or there is no space for it.
    """

    def __init__(self, path: Path) -> None:
        self._fd: Final = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def load(self) -> Position | None:
        """What was saved last; None if there is nothing, or nothing that makes sense."""
        try:
            found = Position(**json.loads(os.pread(self._fd, _LENGTH, 0)))
        except (ValueError, TypeError, RecursionError):
            return None
        numbers = (found.segment, found.offset, found.acknowledged, found.offered)
        sound = isinstance(found.spool, str) and all(type(each) is int and each >= 0 for each in numbers)
        return found if sound else None

    def save(self, position: Position) -> None:
        """Overwrite it.

        Raises:
            OSError: the disk refuses, which after the first time is no matter of space.
        """
        os.pwrite(self._fd, json.dumps(asdict(position)).encode().ljust(_LENGTH), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
