"""What a collector polls: one network namespace, or every one that there is."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from .counters import Counters
from .errors import Failure
from .namespaces import Changes, present
from .sockets.arena import Arena
from .sockets.part import Part
from .sockets.reader import Reader, Tell, open_reader
from .sockets.rows import Origin

EVERY: Final = "all"

# A reader by BPF holds three descriptors and 270 KB in the kernel; of more namespaces a count tells.
MAX_NAMESPACES: Final = 256


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is read of each namespace.

    Attributes:
        reader: one of `sockets.reader.CHOICES`.
        netns: name of a namespace as `ip netns` knows it, None for that of the collector, or `all`.
        states: a bit for each TCP state.
        max_sockets: rows kept of one namespace in one poll; the rest is counted.
    """

    reader: str
    netns: str | None
    states: int
    max_sockets: int


class Sources(Protocol):
    """The namespaces that are polled."""

    def poll(self, origin: Origin, arena: Arena) -> Iterator[Part]:
        """The parts of a poll of each namespace. The next overwrites the rows of the one before."""

    def readers(self) -> tuple[str, ...]:
        """The name of the reader in use for each namespace."""

    def close(self) -> None:
        """Close all readers."""


def open_sources(wanted: Wanted, counters: Counters, tell: Tell) -> Sources:
    """Open what is to be polled.

    Args:
        wanted: what is read.
        counters: where namespaces that come, go and fail are counted.
        tell: takes what people should know, each line once.

    Raises:
        Failure: there is no such namespace, or the host can't be read.
    """
    once = _Once(tell)
    return EveryNamespace(wanted, counters, once) if wanted.netns == EVERY else OneNamespace(wanted, once)


class OneNamespace:
    """A single namespace, whose failure is the collector's."""

    def __init__(self, wanted: Wanted, tell: Tell) -> None:
        self._wanted = wanted
        self._reader = open_reader(wanted.reader, wanted.netns, states=wanted.states, tell=tell)

    def poll(self, origin: Origin, arena: Arena) -> Iterator[Part]:
        """The poll of the namespace.

        Raises:
            Failure: it can't be read.
        """
        wanted = self._wanted
        return self._reader.poll(origin, arena, states=wanted.states, max_sockets=wanted.max_sockets)

    def readers(self) -> tuple[str, ...]:
        """The name of the reader in use."""
        return (self._reader.name,)

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


@dataclass(frozen=True, slots=True)
class _Open:
    """A namespace that is being read.

    Attributes:
        path: where it was found.
        handle: a descriptor of it; the path may soon stand for another.
        reader: of it.
    """

    path: Path
    handle: int
    reader: Reader

    def close(self) -> None:
        self.reader.close()
        os.close(self.handle)


class EveryNamespace:
    """All namespaces of the host, looked for again as they come and go.

    A reader keeps its namespace alive, so one that has lost its name and its last process is let go of at the next
    look, `namespaces.RESCAN_S` later at most, or before the next poll.
    """

    def __init__(self, wanted: Wanted, counters: Counters, tell: Tell) -> None:
        self._wanted = wanted
        self._counters = counters
        self._tell = tell
        self._changes = Changes()
        self._open: dict[int, _Open] = {}

    def poll(self, origin: Origin, arena: Arena) -> Iterator[Part]:
        """The poll of each namespace; one that can't be read is counted, and tried again at the next look.

        What was given of a namespace before its poll failed stays given.

        Raises:
            Failure: no namespace at all can be read.
        """
        wanted = self._wanted
        failure = self._look() if self._changes.due() else None
        done = 0
        for inode, each in list(self._open.items()):
            try:
                yield from each.reader.poll(
                    origin, arena, states=wanted.states, max_sockets=wanted.max_sockets
                )
            except Failure as why:
                failure = why
                self._drop(inode)
                self._failed(each.path, why)
                continue
            done += 1
        if failure and not done:
            raise failure

    def readers(self) -> tuple[str, ...]:
        """The name of the reader in use for each namespace."""
        return tuple(each.reader.name for each in self._open.values())

    def close(self) -> None:
        """Close all readers."""
        for each in self._open.values():
            each.close()
        self._changes.close()

    def _look(self) -> Failure | None:
        """Close what is gone, open what is new; what kept the last one from being opened, if any."""
        found = present()
        failure = None
        for inode in self._open.keys() - found.keys():
            self._drop(inode)
            self._counters.namespaces_gone += 1
        new = [(inode, path) for inode, path in found.items() if inode not in self._open]
        room = MAX_NAMESPACES - len(self._open)
        self._counters.namespaces_left_out += len(new[room:])
        for inode, path in new[:room]:
            try:
                self._open[inode] = self._opened(inode, path)
            except Failure as why:
                failure = why
                self._failed(path, why)
            except FileNotFoundError:
                self._counters.namespaces_gone += 1  # between the look and the opening
        self._counters.namespaces = len(self._open)
        return failure

    def _opened(self, inode: int, path: Path) -> _Open:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Failure(error.strerror or "can't be opened") from error
        try:
            if os.fstat(handle).st_ino != inode:
                raise FileNotFoundError(path)
            itself = f"/proc/self/fd/{handle}"
            reader = open_reader(self._wanted.reader, itself, states=self._wanted.states, tell=self._tell)
        except (Failure, OSError):
            os.close(handle)
            raise
        return _Open(path, handle, reader)

    def _drop(self, inode: int) -> None:
        self._open.pop(inode).close()
        self._counters.namespaces = len(self._open)

    def _failed(self, path: Path, why: Failure) -> None:
        self._counters.namespaces_failed += 1
        self._tell(f"namespace {path}: {why.message}; it is tried again")


class _Once:
    """Tells a line the first time only; of endless different ones, no more than it can remember."""

    MOST: Final = 1_000

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: set[str] = set()

    def __call__(self, line: str) -> None:
        if line not in self._told and len(self._told) < self.MOST:
            self._told.add(line)
            self._tell(line)
