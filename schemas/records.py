"""The constant-length form of a message whose fields are fixed32, fixed64 or bytes, derived from its descriptor.

One numpy record is one delimited row, as `rows.py` has it for sockets. The frame (length, tags) of the first row
of a file tells which message it holds: `is_of` answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Records = npt.NDArray[np.void]
Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]

_FIXED: Final = {
    FieldDescriptor.TYPE_FIXED32: (5, "<u4"),  # (wire type, numpy format): protobuf encoding guide
    FieldDescriptor.TYPE_FIXED64: (1, "<u8"),
}


@dataclass(frozen=True, slots=True, eq=False)
class RecordForm:
    """How rows of one message lie in memory and in files.

    Attributes:
        name: of the message.
        schema_version: that every row says.
        dtype: one delimited row.
        template: its bytes where every field is zero.
        frame: True where a byte of it belongs to no value.
    """

    name: str
    schema_version: int
    dtype: np.dtype[np.void]
    template: npt.NDArray[np.uint8]
    frame: npt.NDArray[np.bool_]

    @property
    def length(self) -> int:
        """Bytes of a delimited row."""
        return self.dtype.itemsize

    def new(self, count: int) -> Records:
        """`count` rows of zeros with frame and schema version in place; `.tobytes()` is valid protobuf."""
        raw = np.empty((count, self.length), np.uint8)
        raw[:] = self.template
        rows: Records = raw.reshape(-1).view(self.dtype)
        rows["schema_version"] = self.schema_version
        return rows

    def is_of(self, first: Buffer) -> bool:
        """Whether these bytes begin with the frame of such a row, of whatever schema version."""
        raw = np.frombuffer(first, np.uint8)[: self.length]
        known = self.frame[: len(raw)]
        return len(raw) == self.length and bool((raw[known] == self.template[known]).all())

    def read(self, buffer: Buffer) -> Records:
        """The rows of a buffer, without copying.

        Raises:
            ValueError: its arguments are what is wrong and the offset of the first byte that is not a row of this
                schema version.
        """
        raw = np.frombuffer(buffer, np.uint8)
        whole = len(raw) // self.length
        grid = raw[: whole * self.length].reshape(whole, self.length)
        rows: Records = grid.reshape(-1).view(self.dtype)
        good = (grid[:, self.frame] == self.template[self.frame]).all(axis=1)
        good &= rows["schema_version"] == self.schema_version
        end = whole if good.all() else int(np.argmin(good))
        if end < whole:
            version = int(rows["schema_version"][end])
            what = f"not a {self.name} of schema version {self.schema_version} (it reads {version})"
        elif rest := len(raw) - whole * self.length:
            what = f"the last row is cut: {rest} of {self.length} bytes"
        else:
            return rows
        raise ValueError(what, end * self.length)


def record_form(message: type[Message], schema_version: int, bytes_lengths: Mapping[str, int]) -> RecordForm:
    """The form of a message.

    Args:
        message: its first field is `schema_version`.
        schema_version: that rows of it say.
        bytes_lengths: of its `bytes` fields. Names ending in `_address` keep their NULs, others are padded by them.
    """
    names, formats, offsets = [], [], []
    body = bytearray()
    for field in message.DESCRIPTOR.fields:
        if field.type in _FIXED:
            wire_type, fmt = _FIXED[field.type]
            body += _varint(field.number << 3 | wire_type)
        else:
            length = bytes_lengths[field.name]
            fmt = f"{'V' if field.name.endswith('_address') else 'S'}{length}"
            body += _varint(field.number << 3 | 2) + _varint(length)
        names.append(field.name)
        formats.append(fmt)
        offsets.append(len(body))
        body += bytes(np.dtype(fmt).itemsize)
    head = _varint(len(body))
    template = np.frombuffer(head + bytes(body), np.uint8)
    offsets = [len(head) + offset for offset in offsets]
    frame = np.ones(len(template), np.bool_)
    for offset, fmt in zip(offsets, formats, strict=True):
        frame[offset : offset + np.dtype(fmt).itemsize] = False
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": len(template)})
    return RecordForm(message.DESCRIPTOR.name, schema_version, dtype, template, frame)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
