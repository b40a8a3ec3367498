"""Which network namespaces there are, and when that may have changed."""

import ctypes
import os
import time
from pathlib import Path
from typing import Final

from .sockets.netns import NAMED, OWN

PROCESSES: Final = Path("/proc")
RESCAN_S: Final = 5.0
# `ip netns add` makes the file first and the namespace after it, and only the first is announced.
SETTLE_S: Final = 0.5

# include/uapi/linux/inotify.h
_IN_CREATE: Final = 0x100
_IN_DELETE: Final = 0x200
_IN_ONLYDIR: Final = 0x01000000
_EVENTS: Final = _IN_CREATE | _IN_DELETE | _IN_ONLYDIR
_EVENTS_LENGTH: Final = 1 << 16


def present() -> dict[int, Path]:
    """A file for each network namespace, by its inode: the name that `ip netns` gave it, or a process in it.

    What is held by neither is not found, nor are processes that this one may not look at: CAP_SYS_PTRACE.
    """
    found: dict[int, Path] = {}
    kind = OWN.stat().st_dev  # a file in /run/netns that no namespace is mounted on is of another device
    # What lasts longest stands first: a process may have ended before its file is opened: no poll of it.
    for path in (OWN, *_named(), *_of_processes()):
        try:
            status = path.stat()
        except OSError:
            continue  # the process has ended, the namespace was deleted, or it is not ours to see
        if status.st_dev == kind:
            found.setdefault(status.st_ino, path)
    return found


def _of_processes() -> list[Path]:
    return [each / "ns" / "net" for each in PROCESSES.iterdir() if each.name.isdecimal()]


def _named() -> list[Path]:
    return list(NAMED.iterdir()) if NAMED.is_dir() else []


class Changes:
    """Says when to look again: when `ip netns` adds or deletes a name, and every few seconds for the rest."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)  # -1: the rescan must do
        self._due = 0.0

    def due(self) -> bool:
        """Whether to look; the first time always."""
        announced = self._announced()
        now = time.monotonic()
        if not announced and now < self._due:
            return False
        self._due = now + (SETTLE_S if announced else RESCAN_S)
        if self._fd >= 0:  # again each time: the directory may be new, or another than it was
            self._libc.inotify_add_watch(self._fd, os.fsencode(NAMED), _EVENTS)
        return True

    def close(self) -> None:
        """Give back what the kernel holds for it."""
        if self._fd >= 0:
            os.close(self._fd)

    def _announced(self) -> bool:
        if self._fd < 0:
            return False
        try:
            return bool(os.read(self._fd, _EVENTS_LENGTH))
        except BlockingIOError:
            return False
