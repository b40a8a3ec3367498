"""Rows turned into columns, a piece that fits the processor's cache at a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW, ROW_LENGTH

Array = npt.NDArray[Any]

# Rows; with their columns what fits into a second-level cache (512 KB). Half and twice of it measured no faster.
_AT_ONCE: Final = 512
_WORD: Final = np.dtype(
    "<u8"
)  # numpy copies and compares words faster than bytes; ROW's names are whole words
_FIELDS: Final = dict(ROW.fields or {})


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of names, each said once.

    Attributes:
        values: the different names, padded with NUL as in a row.
        codes: for each row, which of `values` it has.
    """

    values: npt.NDArray[np.bytes_]
    codes: npt.NDArray[np.intp]


def gather(pieces: Iterable[npt.NDArray[np.void]], columns: Mapping[str, Array]) -> None:
    """Copy fields of rows into columns.

    Args:
        pieces: rows of schemas/rows.py.
        columns: by field; of the field's own type, and as long as all pieces.
    """
    first = 0
    for rows in pieces:
        end = first + len(rows)
        copy_fields(rows, {name: column[first:end] for name, column in columns.items()})
        first = end


def copy_fields(rows: npt.NDArray[np.void], columns: Mapping[str, Array]) -> None:
    """Copy fields of rows into columns, which are as long as the rows; arguments as those of `gather`."""
    if not len(rows):
        return
    raw = rows.view(np.uint8)
    pairs = [(_words(column), _field(raw, name, len(rows))) for name, column in columns.items()]
    for start in range(0, len(rows), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        for column, field in pairs:
            column[piece] = field[piece]


def names_of(column: npt.NDArray[np.bytes_]) -> Names:
    """The different names of a contiguous column, whose neighbours are mostly equal: a host's rows come together."""
    words = _words(column)
    if not len(words):
        return Names(column, np.empty(0, np.intp))
    starts = np.flatnonzero(np.concatenate(([True], (words[1:] != words[:-1]).any(axis=1))))
    codes = np.zeros(len(starts), np.intp)
    for word in words[starts].T:  # names that are equal so far are told apart by their next eight bytes
        different, code = np.unique(word, return_inverse=True)
        if len(different) > 1:
            _, codes = np.unique(codes * len(different) + code, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    return Names(column[starts[first]], np.repeat(codes, np.diff(np.append(starts, len(words)))))


def _field(raw: npt.NDArray[np.uint8], name: str, count: int) -> Array:
    """A field of each row, as it lies."""
    dtype, offset = _FIELDS[name][:2]
    if dtype.kind == "u":
        return np.ndarray(count, dtype, raw.data, offset, (ROW_LENGTH,))
    shape = (count, dtype.itemsize // _WORD.itemsize)
    return np.ndarray(shape, _WORD, raw.data, offset, (ROW_LENGTH, _WORD.itemsize))


def _words(column: Array) -> Array:
    if column.dtype.kind == "u":
        return column
    return column.view(_WORD).reshape(-1, column.dtype.itemsize // _WORD.itemsize)
