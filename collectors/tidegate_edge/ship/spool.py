"""A bounded queue of rows on disk: what is polled is here until the receiver acknowledged it."""

import contextlib
import fcntl
import os
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .form import Buffer
from .spool_frame import Frame, frames, header, read
from .spool_position import Position, PositionFile

# Small against the bound, so that dropping the oldest drops little; large against a frame.
SEGMENT_BYTES: Final = 8 << 20

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_DIGITS: Final = 20  # of 2^64 - 1: names in the order of their numbers


@dataclass(slots=True)
class _Segment:
    """A file of frames.

    Attributes:
        fd: open to read and append.
        size: bytes that hold whole frames.
        unread: frames that `next` did not give out yet, oldest first.
    """

    fd: int
    size: int
    unread: list[Frame]

    @property
    def rows(self) -> int:
        return sum(frame.rows for frame in self.unread)


class Spool:
    """Frames in, frames out in the same order, each kept until it is acknowledged; two threads may share it.

    Rows are in the page cache when `append` returns: a `kill -9` loses none of them. Nothing waits for the disk
    (fsync), so a power cut may lose the last half minute (vm.dirty_expire_centisecs); in return, what is
    acknowledged sooner than that is mostly never written to the disk at all. What a crash left cut or harmed is
    recognised by its checksums and counted as dropped.

    When the bound is hit the oldest segment goes of which no frame was given out, and where there is none the rows
    that are to be appended; when the disk refuses, the latter. Rows are numbered on arrival, so that
    `dropped = offered - acknowledged - pending` holds also after a crash. A power cut may take numbers back that were
    sent, so each boot has a numbering of its own, in which none is given twice.

    Args:
        directory: created if missing, for its owner only; used by one process at a time.
        max_bytes: that all segments may take.
        segment_bytes: after which a segment is closed.

    Raises:
        Failure: the directory can't be used, or another process does.
    """

    def __init__(self, directory: Path, max_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory: Final = directory
        self._max_bytes: Final = max_bytes
        self._segment_bytes: Final = min(segment_bytes, max(max_bytes // 8, 1))
        self._lock: Final = threading.Lock()
        self._arrived: Final = threading.Event()
        self._segments: dict[int, _Segment] = {}
        self._next_row = 0
        self._given_out = 0  # rows that `next` gave out and nobody acknowledged
        self._refused = False  # the disk did, when it was last written to
        try:
            self._position = Position(uuid.uuid4().hex, _BOOT.read_text().strip())
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owner: Final = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file: Final = PositionFile(directory / "position")
            self._recover()
        except BlockingIOError as error:
            raise Failure(f"{directory}: another collector spools to it") from error
        except OSError as error:
            raise Failure(f"{directory}: no spool: {error.strerror}", exit_code=MISSING_PART) from error

    @property
    def acknowledged(self) -> int:
        """Rows, since the spool was made."""
        return self._position.acknowledged

    @property
    def pending(self) -> int:
        """Rows that are kept and not acknowledged."""
        with self._lock:
            return self._pending()

    @property
    def dropped(self) -> int:
        """Rows that were offered since the spool was made, and will never be delivered."""
        with self._lock:
            return self._next_row - self._position.acknowledged - self._pending()

    @property
    def size(self) -> int:
        """Bytes that the segments take."""
        with self._lock:
            return self._size()

    def append(self, data: Buffer, rows: int) -> bool:
        """Keep these rows, or count them as dropped; says which. Raises nothing: a full disk is no surprise."""
        with self._lock:
            row = self._next_row
            self._next_row += rows
            numbering = bytes.fromhex(self._position.spool)
            head = header(numbering, data, row, rows)
            if not self._make_room(len(head) + len(data)):
                self._save()
                return False
            try:
                number, segment = self._active(len(head) + len(data))
                self._write(segment, (head, data))
            except OSError:
                self._refused = True
                self._save()
                return False
            self._refused = False
            end = segment.size + len(head) + len(data)
            segment.unread.append(Frame(numbering, number, segment.size, end, row, rows))
            segment.size = end
        self._arrived.set()
        return True

    def sync(self) -> None:
        """Wait until the disk has what was appended: then a power cut does not take it either. Raises OSError."""
        with self._lock:
            for fd in (self._owner, *(segment.fd for segment in self._segments.values())):
                os.fsync(fd)

    def next(self) -> tuple[Frame, bytes] | None:
        """The oldest frame that was not given out yet, and its rows; None if there is none."""
        with self._lock:
            for segment in self._segments.values():
                if not segment.unread:
                    continue
                frame = segment.unread[0]
                data = self._read(segment, frame)
                if data is None:
                    # Where one frame is harmed the disk is: nothing behind it in this file is believed.
                    segment.unread.clear()
                    continue
                del segment.unread[0]
                self._given_out += frame.rows
                return frame, data
            self._arrived.clear()
        return None

    def again(self, frame: Frame) -> bytes | None:
        """The rows of a frame that was given out; None if the disk does not have them any more."""
        with self._lock:
            return self._read(self._segments[frame.segment], frame)

    def acknowledge(self, frame: Frame) -> None:
        """It was delivered, and so was everything given out before it: remember that, and remove what is done.

        Where the disk refuses to remember, the next process gives it out again.
        """
        self._leave(frame, acknowledged=frame.rows)

    def give_up(self, frame: Frame) -> None:
        """It can't be delivered: count its rows as dropped. In the same order as `acknowledge`."""
        self._leave(frame, acknowledged=0)

    def wait(self, seconds: float) -> None:
        """Wait until `next` may have something, so long at most."""
        self._arrived.wait(seconds)

    def wake(self) -> None:
        """End a wait."""
        self._arrived.set()

    def close(self) -> None:
        """Close the files; what is pending stays for the next one."""
        self._save()
        for segment in self._segments.values():
            os.close(segment.fd)
        self._file.close()
        os.close(self._owner)

    def _pending(self) -> int:
        return self._given_out + sum(segment.rows for segment in self._segments.values())

    def _size(self) -> int:
        return sum(segment.size for segment in self._segments.values())

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:0{_DIGITS}}.segment"

    def _leave(self, frame: Frame, *, acknowledged: int) -> None:
        with self._lock:
            self._given_out -= frame.rows
            self._position = replace(
                self._position,
                segment=frame.segment,
                offset=frame.end,
                acknowledged=self._position.acknowledged + acknowledged,
            )
            self._save()
            newest = max(self._segments)
            done = [number for number in self._segments if number < frame.segment]
            if frame.segment != newest and frame.end == self._segments[frame.segment].size:
                done.append(frame.segment)
            self._remove(done)

    def _save(self) -> None:
        self._position = replace(self._position, offered=self._next_row)
        with contextlib.suppress(OSError):
            self._file.save(self._position)

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            os.close(self._segments.pop(number).fd)
            with contextlib.suppress(FileNotFoundError):
                self._path(number).unlink()

    def _make_room(self, length: int) -> bool:
        while self._size() + length > self._max_bytes:
            untouched = [
                number
                for number, segment in self._segments.items()
                if segment.unread and segment.unread[0].offset == 0
            ]
            if not untouched:
                return False
            self._remove(untouched[:1])
        return True

    def _active(self, length: int) -> tuple[int, _Segment]:
        """The segment to append to: the newest; or a new one, and then the old one's space is free if it is done."""
        number = max(self._segments, default=self._position.segment)
        segment = self._segments.get(number)
        fits = segment is not None and segment.size + length <= self._segment_bytes and not self._refused
        if segment is not None and (fits or not segment.size):
            return number, segment
        if segment is not None and not segment.unread and not self._given_out:
            self._remove([number])
        return number + 1, self._create(number + 1)

    def _create(self, number: int) -> _Segment:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._segments[number] = made = _Segment(os.open(self._path(number), flags, 0o600), 0, [])
        return made

    def _write(self, segment: _Segment, pieces: tuple[Buffer, ...]) -> None:
        """Append all of it or nothing. A write that the disk has no room for ends short, the one after it fails."""
        try:
            for piece in pieces:
                left = memoryview(piece)
                while left:
                    left = left[os.write(segment.fd, left) :]
        except OSError:
            os.ftruncate(segment.fd, segment.size)
            raise

    def _read(self, segment: _Segment, frame: Frame) -> bytes | None:
        try:
            return read(segment.fd, frame)
        except OSError:
            return None

    def _recover(self) -> None:
        """Take over what the last process left; what it left cut or harmed is removed."""
        saved = self._file.load()
        position = saved or self._position
        if position.boot != self._position.boot:
            position = replace(position, spool=self._position.spool, boot=self._position.boot)
        last = None
        for path in sorted(self._directory.glob(f"{'[0-9]' * _DIGITS}.segment")):
            number = int(path.stem)
            if number < position.segment:
                path.unlink()
                continue
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            size = os.fstat(fd).st_size
            start = 0
            if number == position.segment:
                start = min(position.offset, size)  # after a power cut the file may be the shorter
                position = replace(position, offset=start)
            found = list(frames(fd, number, start))
            whole = [frame for frame in found if frame.end <= size]
            end = whole[-1].end if whole else start
            os.ftruncate(fd, end)
            self._segments[number] = _Segment(fd, end, whole)
            if saved is None and last is None and found:
                position = replace(position, acknowledged=found[0].row)
            last = found[-1] if found else last
        self._next_row = max(position.offered, last.row + last.rows if last else 0)
        self._position = replace(position, offered=self._next_row)
        self._file.save(self._position)
