"""Rows as the columns of socket_samples, in Arrow: each field copied once, nothing parsed."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.schemas.rows import ROW

# Rows stand 506 bytes apart: a field of all rows at once would fetch every cache line again for every field, so
# the copy goes by pieces that stay in the second-level cache.
_PIECE: Final = 2048
_NARROW: Final = {"traffic_class": np.int8, "local_prefix_length": np.uint8, "remote_prefix_length": np.uint8}
_TIME: Final = "observed_at_ns"


def arrow_table(rows: npt.NDArray[np.void]) -> pa.Table:
    """Admitted rows as an Arrow table with the names and types that ClickHouse takes for socket_samples.

    Strings and addresses go as fixed-size binary: ClickHouse cuts the NUL bytes that pad a name, and reads 16
    bytes as an IPv6 address.
    """
    names = ROW.names or ()
    columns = {name: np.empty(len(rows), _NARROW.get(name, ROW[name])) for name in names}
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        for name, column in columns.items():
            column[start : start + _PIECE] = piece[name]
    # From buffers: `pa.array` of a numpy column would first import pandas where it is installed.
    arrays = [
        pa.Array.from_buffers(_type(name, column.dtype), len(column), [None, pa.py_buffer(column)])
        for name, column in columns.items()
    ]
    return pa.Table.from_arrays(arrays, names=[name.removesuffix("_ns") for name in columns])


def _type(name: str, dtype: np.dtype[np.generic]) -> pa.DataType:
    if name == _TIME:
        return pa.timestamp("ns", tz="UTC")
    return pa.binary(dtype.itemsize) if dtype.kind in "SV" else pa.from_numpy_dtype(dtype)
