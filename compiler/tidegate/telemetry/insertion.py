"""Inserts a block into socket_samples, once for each token."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Final

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from tidegate.telemetry.admission import DAY_NS
from tidegate.telemetry.native import COLUMNS, NativeBlock
from tidegate.telemetry.page_pipe import write_pages
from tidegate.telemetry.schema_form import CLIENT_SETTINGS

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
        for name in CLIENT_SETTINGS:
            if value := client.get_client_setting(name):
                second.set_client_setting(name, value)
        yield second


def insert_rows(client: Client, block: NativeBlock, token: str) -> None:
    """Insert a block of admitted rows.

    Args:
        client: of an open and migrated store.
        block: complete; it must not change meanwhile.
        token: 64 hex digits; a second insert of it adds nothing, while the store remembers the token.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(token)
    settings = _SETTINGS | {"insert_deduplication_token": token}
    if isinstance(client, HttpClient):
        client.command(f"{_INTO} FORMAT Native", data=b"".join(block.parts), settings=settings)
        return
    clause = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    with _piped(block.parts) as path:
        client.command(f"{_INTO} FROM INFILE '{path}' SETTINGS {clause} FORMAT Native")


def insert_days(client: Client, block: NativeBlock, token: str, days: Collection[int] | None) -> None:
    """As `insert_rows`; with `days`, which are since the epoch, only rows of these, chosen by the server."""
    if days is None:
        insert_rows(client, block, token)
        return
    if not _TOKEN.fullmatch(token):
        raise ValueError(token)
    types = client.query(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}",
        parameters={"table": TABLE},
    ).result_rows
    structure = ", ".join(f"{name} {kind}" for name, kind in types if name in COLUMNS).replace("'", "\\'")
    chosen = ", ".join(map(str, sorted(days)))
    client.command(
        f"{_INTO} SELECT {', '.join(COLUMNS)} FROM input('{structure}')"  # noqa: S608 - names and numbers of our own
        f" WHERE intDiv(toUnixTimestamp64Nano(observed_at), {DAY_NS}) IN ({chosen}) FORMAT Native",
        data=b"".join(block.parts),
        settings=_SETTINGS | {"insert_deduplication_token": token},
    )


@contextmanager
def _piped(parts: Iterable[memoryview]) -> Iterator[str]:
    """Bytes as a file that the engine reads while it is written.

    The client's own insert would write them to a disk, and a file in memory takes as many pages once more.
    """
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(_write, writing, parts)
        try:
            yield f"/proc/self/fd/{reading}"
        finally:
            os.close(reading)  # lets a writer go whose reader has failed
    written.result()  # an end that came too soon is no insert


def _write(pipe: int, parts: Iterable[memoryview]) -> None:
    try:
        write_pages(pipe, parts)
    finally:
        os.close(pipe)
