"""The frame of a row: the protobuf lengths and tags that stand between its values, always the same."""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW, ROW_LENGTH, new_rows

_COMPARED_AT_ONCE: Final = 512  # rows; with their copy about what fits into the second-level cache
_VERSION: Final = "schema_version"


def _words() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """What of a row is compared, and with what: in words of two bytes, which divide a row's length."""
    mask = np.full(ROW_LENGTH, 0xFF, np.uint8)
    for name, (dtype, offset, *_) in (ROW.fields or {}).items():
        if name != _VERSION:
            mask[offset : offset + dtype.itemsize] = 0
    compared = mask.view(np.uint16)
    return compared, new_rows(1).view(np.uint16) & compared


_COMPARED, _EXPECTED = _words()


def framed(data: memoryview | npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """For each row's length of bytes, whether it is a row of this schema version.

    Args:
        data: a whole number of rows' lengths.
    """
    grid = np.frombuffer(data, np.uint16).reshape(-1, ROW_LENGTH // 2)
    good = np.empty(len(grid), np.bool_)
    for start in range(0, len(grid), _COMPARED_AT_ONCE):
        piece = slice(start, start + _COMPARED_AT_ONCE)
        good[piece] = ((grid[piece] & _COMPARED) == _EXPECTED).all(axis=1)
    return good
