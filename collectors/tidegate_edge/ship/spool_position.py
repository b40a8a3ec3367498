"""How far a spool was acknowledged, on disk."""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# One sector, overwritten in place: it needs no space on a full disk, and neither kill -9 nor power loss cuts it.
_LENGTH: Final = 512
_NAME: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Position:
    """Everything before it was acknowledged or dropped.

    Attributes:
        spool: random name of the numbering of rows, 32 hexadecimal digits; a spool gets another at the first
            start after a boot.
        boot: of which boot of the kernel that start was (/proc/sys/kernel/random/boot_id).
        segment: number of the file.
        offset: in it, bytes.
        acknowledged: rows, since the spool was made.
        offered: rows, since the spool was made; more when a frame on disk has a higher number.
    """

    spool: str
    boot: str = ""
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
        named = isinstance(found.boot, str) and isinstance(found.spool, str) and _NAME.fullmatch(found.spool)
        sound = named and all(type(each) is int and each >= 0 for each in numbers)
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
