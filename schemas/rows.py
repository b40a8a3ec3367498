"""The constant-length form of a `SocketRow`, derived from its descriptor: one numpy record is one row.

The writer fills the fields of a template whose tags and lengths are already in place; the reader checks
those bytes and takes the fields as they lie. `sockets.proto` remains the only description of a row.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor

from . import sockets_pb2

SCHEMA_VERSION: Final = 2

# Lengths of the `bytes` fields; sockets.proto states each beside its field.
BYTES_LENGTH: Final = {
    "pop": 16,
    "host": 32,
    "local_address": 16,
    "remote_address": 16,
    "congestion_control": 16,
}

_FIXED: Final = {
    FieldDescriptor.TYPE_FIXED32: (5, "<u4"),  # (wire type, numpy format): protobuf encoding guide
    FieldDescriptor.TYPE_FIXED64: (1, "<u8"),
}


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _layout() -> tuple[np.dtype[np.void], bytes]:
    """The record type of one delimited row, and its bytes when every field is zero."""
    names, formats, offsets = [], [], []
    body = bytearray()
    for field in sockets_pb2.SocketRow.DESCRIPTOR.fields:
        if field.type in _FIXED:
            wire_type, fmt = _FIXED[field.type]
            body += _varint(field.number << 3 | wire_type)
        else:
            length = BYTES_LENGTH[field.name]
            fmt = f"V{length}" if field.name.endswith("_address") else f"S{length}"
            body += _varint(field.number << 3 | 2) + _varint(length)
        names.append(field.name)
        formats.append(fmt)
        offsets.append(len(body))
        body += bytes(np.dtype(fmt).itemsize)
    head = _varint(len(body))
    dtype = np.dtype(
        {
            "names": names,
            "formats": formats,
            "offsets": [len(head) + offset for offset in offsets],
            "itemsize": len(head) + len(body),
        }
    )
    return dtype, head + bytes(body)


_LAYOUT: Final = _layout()
ROW: Final = _LAYOUT[0]
ROW_LENGTH: Final = ROW.itemsize
_TEMPLATE: Final = np.frombuffer(_LAYOUT[1], np.uint8)


def _frame_mask() -> npt.NDArray[np.bool_]:
    """True where a byte belongs to the frame (length, tags), not to a value."""
    mask = np.ones(ROW_LENGTH, np.bool_)
    for dtype, offset, *_ in (ROW.fields or {}).values():
        mask[offset : offset + dtype.itemsize] = False
    return mask


_FRAME: Final = _frame_mask()


def new_rows(count: int) -> npt.NDArray[np.void]:
    """`count` rows of zeros with frame and schema version in place; `.tobytes()` is valid protobuf."""
    raw = np.empty((count, ROW_LENGTH), np.uint8)
    raw[:] = _TEMPLATE
    rows = raw.reshape(-1).view(ROW)
    rows["schema_version"] = SCHEMA_VERSION
    return rows


def read_rows(buffer: bytes | bytearray | memoryview | npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    """The rows of a buffer, without copying.

    Raises:
        ValueError: naming the offset of the first byte that is not a row of this schema version; what
            stands before it is `read_rows(buffer[:error.args[1]])`.
    """
    raw = np.frombuffer(buffer, np.uint8)
    whole = len(raw) // ROW_LENGTH
    grid = raw[: whole * ROW_LENGTH].reshape(whole, ROW_LENGTH)
    good = (grid[:, _FRAME] == _TEMPLATE[_FRAME]).all(axis=1)
    rows = grid.reshape(-1).view(ROW)
    good &= rows["schema_version"] == SCHEMA_VERSION
    if not good.all():
        first = int(np.argmin(good))
        version = int(rows["schema_version"][first])
        offset = first * ROW_LENGTH
        raise ValueError(
            f"byte {offset}: not a row of schema version {SCHEMA_VERSION} (it reads {version})", offset
        )
    if whole * ROW_LENGTH != len(raw):
        offset = whole * ROW_LENGTH
        raise ValueError(
            f"byte {offset}: the last row is cut: {len(raw) - offset} of {ROW_LENGTH} bytes", offset
        )
    return rows
