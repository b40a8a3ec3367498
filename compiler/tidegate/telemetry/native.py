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
from tidegate.telemetry.columns import Array, Names

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
    """Memory for one block at a time.

    First `reserve` gives the columns to be filled: most go in as they are. Then `complete` adds the others.

    Attributes:
        columns: by field, of the field's own type.
    """

    columns: Mapping[str, Array]

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._begin = 0
        self._end = 0
        self._rows = 0
        self.columns = {}

    @property
    def data(self) -> memoryview:
        """The block's bytes."""
        return self._memory[self._begin : self._end].data

    def reserve(self, rows: int) -> Mapping[str, Array]:
        """Begin a block; its columns, to be filled. What was in it is gone."""
        size = rows * _MOST + _HEADS
        if size > len(self._memory):
            # Of numpy, which asks the kernel for large pages: they come at a quarter of the small ones' price.
            self._memory = np.empty(size, np.uint8)
        self._rows, self._end = rows, 0
        others = {name: self._array(ROW[name]) for name in (*NAMES, *NARROWED)}
        self._begin = self._end
        self._write(_varint(len(COLUMNS)) + _varint(rows))
        self.columns = others | {name: self._column(name, ROW[name], _type(name)) for name in _AS_THEY_ARE}
        return self.columns

    def keep(self, good: npt.NDArray[np.bool_]) -> Mapping[str, Array]:
        """Begin again with these rows only; the columns hold them."""
        kept = {name: column[good] for name, column in self.columns.items()}
        for name, column in self.reserve(int(np.count_nonzero(good))).items():
            column[:] = kept[name]
        return self.columns

    def complete(self, names: Mapping[str, Names]) -> None:
        """Add the columns that go in otherwise than a row has them.

        Args:
            names: `NAMES`, all of them valid UTF-8; the values of `NARROWED` are small enough.
        """
        for name, kind in NARROWED.items():
            self._column(name, np.dtype(np.uint8), kind)[:] = self.columns[name]
        for name in NAMES:
            keys = [value.rstrip(b"\0") for value in names[name].values.tolist()]
            self._head(name, "LowCardinality(String)")
            self._write(np.array([_KEYS_VERSION, _INDEX_TYPE, len(keys)], "<u8").tobytes())
            self._write(b"".join(_varint(len(key)) + key for key in keys))
            self._write(np.array([self._rows], "<u8").tobytes())
            self._array(_INDEX)[:] = names[name].codes

    def _column(self, name: str, dtype: np.dtype[np.generic], kind: str) -> Array:
        self._head(name, kind)
        return self._array(dtype)

    def _head(self, name: str, kind: str) -> None:
        self._write(_string(name.removesuffix("_ns")) + _string(kind))

    def _array(self, dtype: np.dtype[np.generic]) -> Array:
        start = self._end
        self._end += self._rows * dtype.itemsize
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
