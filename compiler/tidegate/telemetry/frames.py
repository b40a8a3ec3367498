"""The frame of a row: the protobuf lengths and tags that stand between its values, always the same."""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW, ROW_LENGTH, new_rows

_VERSION: Final = "schema_version"
_AT_ONCE: Final = 4  # rows: so many are whole words of eight bytes
_COMPARED_AT_ONCE: Final = 512  # rows; with their copy about what fits into the second-level cache


def _bytes() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """What of a row is compared, and with what."""
    compared = np.full(ROW_LENGTH, 0xFF, np.uint8)
    for name, (dtype, offset, *_) in (ROW.fields or {}).items():
        if name != _VERSION:
            compared[offset : offset + dtype.itemsize] = 0
    return compared, new_rows(1).view(np.uint8) & compared


_COMPARED, _EXPECTED = _bytes()
_COMPARED_WORDS: Final = np.tile(_COMPARED, _AT_ONCE).view(np.uint64)
_EXPECTED_WORDS: Final = np.tile(_EXPECTED, _AT_ONCE).view(np.uint64)


def framed(data: memoryview | npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """For each row's length of bytes, whether it is a row of this schema version.

    Args:
        data: a whole number of rows' lengths.
    """
    raw = np.frombuffer(data, np.uint8)
    good = np.empty(len(raw) // ROW_LENGTH, np.bool_)
    for start in range(0, len(good), _COMPARED_AT_ONCE):
        piece = slice(start, start + _COMPARED_AT_ONCE)
        good[piece] = _framed(raw[start * ROW_LENGTH : piece.stop * ROW_LENGTH])
    return good


def _framed(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_] | bool:
    """Four rows at a time, and only where some are not good, or are no four, row by row."""
    if len(raw) % (_AT_ONCE * ROW_LENGTH) == 0:
        words = raw.view(np.uint64).reshape(-1, len(_COMPARED_WORDS))
        if ((words & _COMPARED_WORDS) == _EXPECTED_WORDS).all():
            return True
    good: npt.NDArray[np.bool_] = ((raw.reshape(-1, ROW_LENGTH) & _COMPARED) == _EXPECTED).all(axis=1)
    return good
