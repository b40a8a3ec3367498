"""The steering file as `status` compares it: read and checked again only where it changed."""

import stat
import time
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.steer.steering import read_steering

from .protocol import Document

# The kernel's clock of files stands still for some milliseconds: what changed just now may change again unseen.
SETTLED_NS: Final = 10**9


class SteeringFile:
    """To check 10,000 claims takes a second of CPU, which a monitor that asks every few seconds must not cost.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._known: tuple[object, Document] | None = None

    def document(self) -> Document:
        """Its path, whether it is there, and its generation or what ails it."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return self._read() | {"present": False}
        except OSError:
            return self._read()  # which says why
        if not stat.S_ISREG(found.st_mode):  # a pipe would hold the daemon up
            return self._says(error=f"{self._path}: no regular file")
        identity = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        if self._known and self._known[0] == identity:
            return self._known[1]
        document = self._read()
        settled = time.time_ns() - found.st_ctime_ns > SETTLED_NS
        self._known = (identity, document) if settled else None
        return document

    def _read(self) -> Document:
        try:
            return self._says(generation=read_steering(self._path).generation)
        except Failure as failure:
            return self._says(error=failure.message)

    def _says(self, generation: str | None = None, error: str | None = None) -> Document:
        return {"path": str(self._path), "present": True, "generation": generation, "error": error}
