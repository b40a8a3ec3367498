"""Inserts rows of host health and of transfers into their tables, once for each token."""

from clickhouse_connect.driver.client import Client

from tidegate.schemas.records import Records
from tidegate.telemetry.record import RecordKind


def insert_records(client: Client, kind: RecordKind, token: str, rows: Records) -> None:
    """Insert admitted rows; none are no insert.

    Args:
        client: of an open and migrated store.
        kind: of the rows.
        token: 64 hex digits; a second insert of it into the kind's table adds nothing, while the store remembers it.
        rows: at most a block's.
    """
    if len(rows):
        settings = {"insert_deduplicate": 1, "insert_deduplication_token": token, "async_insert": 0}
        client.insert_arrow(kind.table, kind.arrow_table(rows), settings=settings)
