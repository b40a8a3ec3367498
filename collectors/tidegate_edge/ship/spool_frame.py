"""The frames that a spool's segments consist of: some whole rows, behind a header that tells if they are unharmed."""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .form import Buffer

_MAGIC: Final = b"TGF2"
_HEADER: Final = struct.Struct("<4s16sIIQ")  # magic, numbering, bytes of rows, rows, number of the first row
_CHECK: Final = struct.Struct("<I")  # CRC-32 of the header before it, then of the rows: zlib.crc32
HEADER_LENGTH: Final = _HEADER.size + 2 * _CHECK.size


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a frame lies, and which rows it holds.

    Attributes:
        numbering: 16 random bytes; with a row's number they name the row for ever.
        segment: number of the file.
        offset: of its header, bytes.
        end: where the next frame begins.
        row: number of its first row, counted from the spool's first.
        rows: in it.
    """

    numbering: bytes
    segment: int
    offset: int
    end: int
    row: int
    rows: int


def header(numbering: bytes, data: Buffer, row: int, rows: int) -> bytes:
    """What stands before `data`."""
    head = _HEADER.pack(_MAGIC, numbering, len(data), rows, row)
    return head + _CHECK.pack(zlib.crc32(head)) + _CHECK.pack(zlib.crc32(data))


def frames(fd: int, segment: int, offset: int = 0) -> Iterator[Frame]:
    """The frames of a segment from `offset` on, by their headers.

    The last may reach beyond the end of the file: its rows were being written when the writer was killed. What does
    not begin with an unharmed header ends the segment.

    Raises:
        OSError: the file can't be read.
    """
    while head := os.pread(fd, HEADER_LENGTH, offset):
        if len(head) < HEADER_LENGTH or not head.startswith(_MAGIC):
            return
        _magic, numbering, length, rows, row = _HEADER.unpack_from(head)
        if _CHECK.unpack_from(head, _HEADER.size)[0] != zlib.crc32(head[: _HEADER.size]):
            return
        frame = Frame(numbering, segment, offset, offset + HEADER_LENGTH + length, row, rows)
        yield frame
        offset = frame.end


def read(fd: int, frame: Frame) -> bytes | None:
    """The rows of a frame; None if they are not what was written.

    Raises:
        OSError: the file can't be read.
    """
    whole = os.pread(fd, frame.end - frame.offset, frame.offset)
    data = whole[HEADER_LENGTH:]
    written = (
        len(whole) == frame.end - frame.offset and _CHECK.unpack_from(whole, HEADER_LENGTH - _CHECK.size)[0]
    )
    return data if written == zlib.crc32(data) else None
