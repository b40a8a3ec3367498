"""A block of rows in ClickHouse's Native format.

Native is columns one after the other, so that the engine takes each with one copy; RowBinary, which is rows as
they lie, costs it a call for every value: four times as long for our rows.
https://clickhouse.com/docs/interfaces/formats/Native
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW
from tidegate.telemetry.columns import Array, Names, copy_fields

_TIME: Final = "observed_at_ns"
NAMES: Final = ("pop", "host", "congestion_control")
NARROWED: Final = {"traffic_class": "Int8", "local_prefix_length": "UInt8", "remote_prefix_length": "UInt8"}
COLUMNS: Final = tuple(name.removesuffix("_ns") for name in ROW.names or ())
_AS_THEY_ARE: Final = tuple(name for name in ROW.names or () if name not in NAMES and name not in NARROWED)
# LowCardinality: one dictionary a block, its own keys (SerializationLowCardinality.cpp, HasAdditionalKeysBit), and
# indexes of four bytes.
_KEYS_VERSION: Final = 1
_INDEX_TYPE: Final = 1 << 9 | 2
_INDEX: Final = np.dtype("<u4")
_HEADS: Final = 8192  # bytes; more than all columns' names, types and lengths together
# Bytes a row at most: its fields, what is narrowed once more, and of each name a key and an index.
_MOST: Final = (
    sum(ROW[name].itemsize for name in ROW.names or ())
    + len(NARROWED)
    + sum(1 + ROW[name].itemsize + _INDEX.itemsize for name in NAMES)
)


class NativeBlock:
    """Memory for one block at a time: `reserve` begins it, `complete` ends it.

    Attributes:
        rows: how many it holds.
        parts: a complete block's bytes, one part after the other; room for further rows lies between them.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.parts: tuple[memoryview, ...] = ()
        self._memory = np.empty(0, np.uint8)
        self._end = 0
        self._room = 0
        self._columns: dict[str, Array] = {}
        self._sent: list[tuple[int, int, int]] = []  # of a column: its head, its values, bytes of each

    @property
    def columns(self) -> dict[str, Array]:
        """By field, of the field's own type."""
        return {name: column[: self.rows] for name, column in self._columns.items()}

    def reserve(self, rows: int) -> None:
        """Begin a block, with room for so many rows. What was in it is gone."""
        size = rows * _MOST + _HEADS
        if size > len(self._memory):
            # Of numpy, which asks the kernel for large pages: they come at a quarter of the small ones' price.
            self._memory = np.empty(size, np.uint8)
        self.rows, self._room, self._end = 0, rows, 0
        self._columns = {name: self._array(ROW[name], rows) for name in (*NAMES, *NARROWED)}
        self._sent = []
        for name in _AS_THEY_ARE:
            head = self._end
            self._head(name, _type(name))
            self._sent.append((head, self._end, ROW[name].itemsize))
            self._columns[name] = self._array(ROW[name], rows)

    def add(self, rows: npt.NDArray[np.void]) -> None:
        """Copy rows of schemas/rows.py into the columns; where there is no room, more is reserved."""
        first, end = self.rows, self.rows + len(rows)
        if end > self._room:
            self._refill({name: column.copy() for name, column in self.columns.items()}, 2 * end)
        copy_fields(rows, {name: column[first:end] for name, column in self._columns.items()})
        self.rows = end

    def keep(self, good: npt.NDArray[np.bool_]) -> None:
        """Leave the other rows out."""
        self._refill({name: column[good] for name, column in self.columns.items()}, self._room)

    def complete(self, names: Mapping[str, Names]) -> None:
        """Add the columns that go in otherwise than a row has them.

        Args:
            names: `NAMES`, all of them valid UTF-8; the values of `NARROWED` are small enough.
        """
        counts = self._end
        self._write(_varint(len(COLUMNS)) + _varint(self.rows))
        others = self._end
        for name, kind in NARROWED.items():
            self._head(name, kind)
            self._array(np.dtype(np.uint8), self.rows)[:] = self._columns[name][: self.rows]
        for name in NAMES:
            keys = [value.rstrip(b"\0") for value in names[name].values.tolist()]
            self._head(name, "LowCardinality(String)")
            self._write(np.array([_KEYS_VERSION, _INDEX_TYPE, len(keys)], "<u8").tobytes())
            self._write(b"".join(_varint(len(key)) + key for key in keys))
            self._write(np.array([self.rows], "<u8").tobytes())
            self._array(_INDEX, self.rows)[:] = names[name].codes
        as_they_are = ((head, values + self.rows * each) for head, values, each in self._sent)
        bounds = ((counts, others), *as_they_are, (others, self._end))
        self.parts = tuple(self._memory[begin:end].data for begin, end in bounds)

    def _refill(self, columns: Mapping[str, Array], room: int) -> None:
        self.reserve(room)
        self.rows = len(columns[_TIME])
        for name, column in self.columns.items():
            column[:] = columns[name]

    def _head(self, name: str, kind: str) -> None:
        self._write(_string(name.removesuffix("_ns")) + _string(kind))

    def _array(self, dtype: np.dtype[np.generic], rows: int) -> Array:
        start = self._end
        self._end += rows * dtype.itemsize
        return self._memory[start : self._end].view(dtype)

    def _write(self, data: bytes) -> None:
        start = self._end
        self._end += len(data)
        self._memory[start : self._end] = np.frombuffer(data, np.uint8)


def _type(name: str) -> str:
    if name == _TIME:
        return "DateTime64(9, 'UTC')"
    return "IPv6" if ROW[name].kind == "V" else f"UInt{8 * ROW[name].itemsize}"


def _string(text: str) -> bytes:
    return _varint(len(text)) + text.encode()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
