"""The log over its rotations: which files to read, from where on, and until when.

logrotate renames a file or copies and truncates it. A renamed one is still written to until every worker of the
server has opened the new one, so it is read until it has been silent for a while. A copy holds what was written
between the last read and the truncation; it is told by its first bytes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .position import Position
from .tail import Tail

SILENT_NS: Final = 60 * 10**9
_MAX_ROTATED: Final = 64
_MAX_OPEN: Final = 8
_COMPRESSED: Final = frozenset({".gz", ".bz2", ".xz", ".zst"})


@dataclass(slots=True)
class _Open:
    tail: Tail
    last_ns: int


@dataclass(slots=True)
class Log:
    """An access log.

    Attributes:
        path: where the server writes it.
        trouble: counts by kind what was lost or damaged.
    """

    path: Path
    trouble: Counter[str] = field(default_factory=Counter)
    _files: list[_Open] = field(default_factory=list)

    def resume(self, positions: Sequence[Position], now_ns: int) -> None:
        """Open what was left, and what came after it.

        Args:
            positions: as they were saved, oldest first; none at the first start, which reads from the beginning.
            now_ns: monotonic time, nanoseconds.
        """
        if not positions:
            return
        files = list(self._rotated()) + self._current()
        found: dict[int, int] = {}
        for position in positions:
            number = _find(files, position)
            if number is None:
                self.trouble["files gone before they were read to their end"] += 1
            else:
                found[number] = position.offset
        # Without a file that is known, nothing tells which of the rotated ones are unread.
        first = min(found, default=len(files) - 1)
        for number, tail in enumerate(files):
            if number < first:
                tail.close()
                continue
            tail.go_to(found.get(number, 0))
            self._files.append(_Open(tail, now_ns))

    def lines(self, now_ns: int) -> list[bytes]:
        """The next lines of all files, oldest file first; none where there is nothing new.

        Args:
            now_ns: monotonic time, nanoseconds.

        Raises:
            Failure: a file can't be read.
        """
        self._follow(now_ns)
        whole: list[bytes] = []
        for each in self._files:
            try:
                read = each.tail.read()
            except OSError as error:
                raise Failure(f"{self.path}: {error.strerror}", exit_code=MISSING_PART) from error
            whole += read.whole
            if read.too_long:
                self.trouble["lines too long"] += read.too_long
            if read.progress:
                each.last_ns = now_ns
        return whole

    @property
    def positions(self) -> tuple[Position, ...]:
        """How far the files were read."""
        return tuple(each.tail.position for each in self._files)

    def close(self) -> None:
        """Close all files."""
        for each in self._files:
            each.tail.close()
        self._files.clear()

    def _follow(self, now_ns: int) -> None:
        copies = [
            copy for each in self._files if each.tail.was_cut() for copy in self._begin_again(each.tail)
        ]
        self._files[:0] = [_Open(tail, now_ns) for tail in copies]
        known = {each.tail.identity for each in self._files}
        for tail in self._current():
            if tail.identity in known:
                tail.close()
            else:
                self._files.append(_Open(tail, now_ns))
        keep = self._files[-1:]
        for each in reversed(self._files[:-1]):
            if now_ns - each.last_ns < SILENT_NS and len(keep) < _MAX_OPEN:
                keep.insert(0, each)
            else:
                if each.tail.offset < each.tail.size:
                    self.trouble["lines cut at the end of a rotated file"] += 1
                each.tail.close()
        self._files = keep

    def _begin_again(self, tail: Tail) -> Iterator[Tail]:
        """Yields the copy that was made before the file was truncated."""
        left = tail.position
        tail.go_to(0)
        copy = None
        for other in self._rotated():
            if copy is None and other.identity != tail.identity and other.is_at(left) and left.offset:
                copy = other
            else:
                other.close()
        if copy is None:
            self.trouble["truncations without a copy"] += 1
        else:
            copy.go_to(left.offset)
            yield copy

    def _current(self) -> list[Tail]:
        try:
            return [Tail(self.path)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Failure(f"{self.path}: {error.strerror}", exit_code=MISSING_PART) from error

    def _rotated(self) -> Iterator[Tail]:
        """Files beside the log whose names begin with its own, the one written last at the end."""
        beside = []
        with suppress(OSError):
            for path in self.path.parent.iterdir():
                ours = path.name.startswith((f"{self.path.name}.", f"{self.path.name}-"))
                if ours and path.suffix not in _COMPRESSED:
                    with suppress(OSError):
                        beside.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(beside)[-_MAX_ROTATED:]:
            with suppress(OSError):
                yield Tail(path)


def _find(files: Sequence[Tail], position: Position) -> int | None:
    """Which file was read up to `position`: the same one, or else its copy."""
    fits = [number for number, tail in enumerate(files) if tail.is_at(position)]
    same = [n for n in fits if files[n].identity == (position.device, position.inode)]
    copies = fits if position.offset else []
    return next(iter(same + copies), None)
