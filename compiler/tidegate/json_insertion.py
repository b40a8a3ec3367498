"""Inserts a few rows of Python's own values, as a ledger has them.

The client's own `insert` asks for the table's columns first, and imports pandas, wherever that is installed, to see
whether it was given a frame of it: half a second, in which a load has not begun.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


def insert_json(
    client: "Client",
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    settings: Mapping[str, int] | None = None,
) -> None:
    """Insert rows; none are no insert.

    Args:
        client: of an open and migrated store.
        table: where they go.
        columns: of the table.
        rows: a value for each column: text, whole numbers, sequences of such; a DateTime as Unix time in seconds.
        settings: of this insert.
    """
    if data := "\n".join(map(json.dumps, rows)):
        client.raw_insert(
            table, columns, data.encode(), settings=dict(settings or {}), fmt="JSONCompactEachRow"
        )
