"""Inserts rows of host health and of transfers into their tables, once for each token."""

from collections.abc import Collection

import numpy as np
from clickhouse_connect.driver.client import Client

from tidegate.schemas.records import Records
from tidegate.telemetry.admission import DAY_NS
from tidegate.telemetry.record import RecordKind


def insert_records(
    client: Client, kind: RecordKind, rows: Records, token: str, days: Collection[int] | None = None
) -> None:
    """Insert admitted rows; none are no insert.

    Args:
        client: of an open and migrated store.
        kind: of the rows.
        rows: at most a block's.
        token: 64 hex digits; a second insert of it into the kind's table adds nothing, while the store remembers it.
        days: since the epoch; only rows of these. None: all.
    """
    if days is not None:
        rows = rows[np.isin(rows[kind.time] // np.uint64(DAY_NS), list(days))]
    if len(rows):
        settings = {"insert_deduplicate": 1, "insert_deduplication_token": token, "async_insert": 0}
        client.insert_arrow(kind.table, kind.arrow_table(rows), settings=settings)
