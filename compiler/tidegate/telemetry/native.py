"""A block of rows in ClickHouse's Native format.

Native is columns one after the other, so that the engine takes each with one copy; RowBinary, which is rows as
they lie, costs it a call for every value: four times as long for our rows.
https://clickhouse.com/docs/interfaces/formats/Native
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tidegate.schemas.rows import ROW
from tidegate.telemetry.columns import Array, Names

_TIME: Final = "observed_at_ns"
NAMES: Final = ("pop", "host", "congestion_control")
NARROWED: Final = {"traffic_class": "Int8", "local_prefix_length": "UInt8", "remote_prefix_length": "UInt8"}
COLUMNS: Final = tuple(name.removesuffix("_ns") for name in ROW.names or ())
_SIZES: Final = {name: dtype.itemsize for name, (dtype, *_) in (ROW.fields or {}).items()}
_AS_THEY_ARE: Final = tuple(name for name in _SIZES if name not in NAMES and name not in NARROWED)
# LowCardinality: one dictionary a block, its own keys (SerializationLowCardinality.cpp, HasAdditionalKeysBit), and
# indexes of four bytes.
_KEYS_VERSION: Final = 1
_INDEX_TYPE: Final = 1 << 9 | 2
_INDEX: Final = np.dtype("<u4")
_HEADS: Final = 8192  # bytes; more than all columns' names, types and lengths together


class NativeBlock:
    """Memory for one block at a time.

    First `reserve` gives the columns that go in as they are, to be filled in place; then `complete` adds the others.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._end = 0
        self._rows = 0

    @property
    def data(self) -> memoryview:
        """The block's bytes."""
        return self._memory[: self._end].data

    def reserve(self, rows: int) -> dict[str, Array]:
        """Begin a block; its columns of numbers and addresses, by field, to be filled. What was in it is gone."""
        size = rows * (sum(_SIZES.values()) + len(NAMES) * (1 + _INDEX.itemsize)) + _HEADS
        if size > len(self._memory):
            # Of numpy, which asks the kernel for large pages: they come at a quarter of the small ones' price.
            self._memory = np.empty(size, np.uint8)
        self._rows, self._end = rows, 0
        self._write(_varint(len(COLUMNS)) + _varint(rows))
        return {name: self._column(name, ROW[name], _type(name)) for name in _AS_THEY_ARE}

    def complete(self, numbers: Mapping[str, Array], names: Mapping[str, Names]) -> None:
        """Add the other columns.

        Args:
            numbers: `NARROWED`, their values small enough.
            names: `NAMES`, all of them valid UTF-8.
        """
        for name, kind in NARROWED.items():
            self._column(name, np.dtype(np.uint8), kind)[:] = numbers[name]
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
