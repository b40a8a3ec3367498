"""Inserts a block into socket_samples, once for each token."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from tidegate.telemetry.native import COLUMNS, NativeBlock

TABLE: Final = "socket_samples"
_INTO: Final = f"INSERT INTO {TABLE} ({', '.join(COLUMNS)})"
_TOKEN: Final = re.compile(r"[0-9a-f]{64}")
# A token's insert is one block, whatever its rows, and never waits in the server's memory.
_SETTINGS: Final = {
    "async_insert": 0,
    "insert_deduplicate": 1,
    "min_insert_block_size_rows": 0,
    "min_insert_block_size_bytes": 0,
}


@contextmanager
def another(client: Client) -> Iterator[Client]:
    """A client of the same store that inserts at the same time: the embedded engine takes one query a client.

    Args:
        client: of an open store; a server's does for both.
    """
    if isinstance(client, HttpClient):
        yield client
        return
    with closing(clickhouse_connect.get_client(dsn=client.uri, database=client.database)) as second:
        yield second


def insert_rows(client: Client, block: NativeBlock, token: str) -> None:
    """Insert a block of admitted rows.

    Args:
        client: of an open and migrated store.
        block: complete.
        token: 64 hex digits; a second insert of it adds nothing, while the store remembers the token.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(token)
    settings = _SETTINGS | {"insert_deduplication_token": token}
    if isinstance(client, HttpClient):
        client.command(f"{_INTO} FORMAT Native", data=bytes(block.data), settings=settings)
        return
    # The client's own insert would write the block to a file; it is one already.
    clause = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    client.command(f"{_INTO} FROM INFILE '{block.path}' SETTINGS {clause} FORMAT Native")
