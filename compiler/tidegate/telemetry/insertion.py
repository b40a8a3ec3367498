"""Inserts rows into socket_samples as they lie: what protobuf calls a row of constant length, RowBinary reads too.

Between the values stand the frame's bytes, which go by as columns that nobody selects. So no value is copied or
parsed in Python.
"""

import re
import tempfile
from typing import Final

import numpy as np
import numpy.typing as npt
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from tidegate.schemas.rows import ROW

TABLE: Final = "socket_samples"
_TIME: Final = "observed_at_ns"
_TIME_TYPE: Final = "DateTime64(9, 'UTC')"
_NARROW: Final = {
    "traffic_class": "toInt8",
    "local_prefix_length": "toUInt8",
    "remote_prefix_length": "toUInt8",
}
_TOKEN: Final = re.compile(r"[0-9a-f]{64}")
# A token's insert is one block, whatever its rows, and never waits in the server's memory.
_SETTINGS: Final = (
    "async_insert = 0, insert_deduplicate = 1, deduplicate_insert_select = 'force_enable',"
    " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 1073741824, max_insert_threads = 1,"
    " max_threads = 1"
)


def _structure() -> str:
    """A row's bytes as columns of RowBinary, frame and values in turn."""
    columns, end = [], 0
    for name, (dtype, offset, *_) in (ROW.fields or {}).items():
        kind = {"S": f"FixedString({dtype.itemsize})", "V": "IPv6", "u": f"UInt{8 * dtype.itemsize}"}[
            dtype.kind
        ]
        columns += [
            f"frame_{offset} FixedString({offset - end})",
            f"{name} {_TIME_TYPE if name == _TIME else kind}",
        ]
        end = offset + dtype.itemsize
    return ", ".join(columns)


def _selected(name: str) -> str:
    if ROW[name].kind == "S":
        return f"toStringCutToZero({name})"
    return f"{_NARROW[name]}({name})" if name in _NARROW else name


_NAMES: Final = ROW.names or ()
_INTO: Final = f"INSERT INTO {TABLE} ({', '.join(name.removesuffix('_ns') for name in _NAMES)})"
_SELECT: Final = f"SELECT {', '.join(map(_selected, _NAMES))} FROM "  # noqa: S608 - names of our schema
_AS_ARGUMENT: Final = "'" + _structure().replace("'", "\\'") + "'"


def insert_rows(client: Client, rows: npt.NDArray[np.void], token: str) -> None:
    """Insert admitted rows, once for each token.

    Args:
        client: of an open and migrated store.
        rows: of schemas/rows.py, their frame in place; at most what fits into one block (1 GiB).
        token: 64 hex digits; a second insert of it adds nothing, while the store remembers the token.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(token)
    settings = f" SETTINGS {_SETTINGS}, insert_deduplication_token = '{token}' "
    data = rows.view(np.uint8).data
    if isinstance(client, HttpClient):
        source = f"input({_AS_ARGUMENT}) FORMAT RowBinary"
        client.command(_INTO + settings + _SELECT + source, data=bytes(data), use_database=True)
        return
    # The embedded engine takes data from a file. It is ours alone: what was verified is what is inserted.
    with tempfile.NamedTemporaryFile(prefix="tidegate-", suffix=".rows") as file:
        file.write(data)
        file.flush()
        client.command(_INTO + settings + _SELECT + f"file('{file.name}', 'RowBinary', {_AS_ARGUMENT})")
