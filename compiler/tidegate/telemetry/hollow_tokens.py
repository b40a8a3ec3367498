"""Inserts a block into a single ClickHouse server, also where the server kept the block's token and not its rows.

A MergeTree table notes a block's token and only then moves the block's part into place (`schema_tokens`), one part a
day. A server that is killed between the two keeps a token that stands for nothing, and drops the repeated insert. So
after each insert some rows of each day are looked up; a part is there whole or not at all, and a query that begins
after the insert sees it, since both take the same lock of the table. Days that are missing are inserted again
under the next token of a fixed row of tokens, so that two processes which do the same insert them once.

A replica may lag behind the one that took the insert, and has no such gap: there nothing is looked up.
"""

import hashlib
import ipaddress
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from tidegate.errors import MISSING_PART, Failure
from tidegate.telemetry.admission import DAY_NS
from tidegate.telemetry.columns import Array

TIMES: Final = {"socket_samples": "observed_at", "transfers": "finished_at", "host_health": "observed_at"}
# What identifies a row, the table's sorting key first.
_IDENTITY: Final = {
    "socket_samples": ("pop", "remote_address", "observed_at", "cookie", "host", "netns"),
    "transfers": ("pop", "remote_address", "finished_at", "host", "connection", "connection_requests"),
    "host_health": ("pop", "host", "observed_at"),
}
_LOOKED_UP: Final = 8  # rows a day, evenly spaced: of other messages and other hosts
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a block.

    Attributes:
        table: where they go.
        days: since the epoch; of each some rows, as tuples of SQL.
    """

    table: str
    days: Mapping[int, tuple[str, ...]]


def may_be_hollow(client: Client, table: str) -> bool:
    """Whether a token of the table may stand for nothing: on a server, in a table without replicas.

    The tokens of an embedded store are looked through when it is opened.
    """
    if not isinstance(client, HttpClient):
        return False
    engine = client.command(
        "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = {table:String}",
        parameters={"table": table},
    )
    return bool(engine == "MergeTree")


def sample_of(table: str, rows: Mapping[str, Array] | npt.NDArray[np.void]) -> Sample | None:
    """Rows of each day of a block; None if the block has none.

    Args:
        table: where they go.
        rows: admitted, of the kind that the table takes; or their columns, by field.
    """
    day_of = rows[f"{TIMES[table]}_ns"] // np.uint64(DAY_NS)
    if not len(day_of):
        return None
    chosen = {}
    for day in np.unique(day_of).tolist():
        of_day = np.flatnonzero(day_of == day)
        spaced = of_day[np.linspace(0, len(of_day) - 1, min(_LOOKED_UP, len(of_day)), dtype=np.intp)]
        chosen[day] = tuple(sorted({_sql(table, rows, each) for each in spaced}))
    return Sample(table, chosen)


def insert_all(
    client: Client, token: str, sample: Sample | None, insert: Callable[[str, Collection[int] | None], None]
) -> None:
    """Insert a block until all its days are there.

    Args:
        client: of an open and migrated store.
        token: 64 hex digits.
        sample: of the block; None where no token is hollow.
        insert: inserts the block's rows of these days, or of all where there is None, under a token.

    Raises:
        Failure: the server drops the rows each time.
    """
    insert(token, None)
    if sample is None:
        return
    for attempt in range(_ATTEMPTS):
        missing = _missing(client, sample)
        if not missing:
            return
        insert(hashlib.sha256(f"{token}/{attempt}".encode()).hexdigest(), missing)
    raise Failure(
        f"the telemetry store says that it has rows in {sample.table}, and does not find them",
        help="look at its log, and at the disk; the same command goes on where it stood",
        exit_code=MISSING_PART,
    )


def _missing(client: Client, sample: Sample) -> list[int]:
    """The days of which not every row of the sample is there."""
    identity = ", ".join(_IDENTITY[sample.table])
    rows = ", ".join(each for of_day in sample.days.values() for each in of_day)
    day = f"toUInt64(intDiv(toUnixTimestamp64Nano({TIMES[sample.table]}), {DAY_NS}))"
    found = client.query(
        f"SELECT {day}, uniqExact({identity}) FROM {sample.table} WHERE ({identity}) IN ({rows}) GROUP BY 1"  # noqa: S608
    ).result_rows
    there = {int(number): int(count) for number, count in found}
    return [number for number, wanted in sample.days.items() if there.get(number, 0) < len(wanted)]


def _sql(table: str, rows: Mapping[str, Array] | npt.NDArray[np.void], index: int) -> str:
    """A row's identity as a tuple; only the row's own numbers and admitted names stand in it."""
    time = TIMES[table]
    names = (f"{column}_ns" if column == time else column for column in _IDENTITY[table])
    return f"({', '.join(_literal(name, rows[name][index]) for name in names)})"


def _literal(column: str, value: Any) -> str:  # noqa: ANN401 - numpy's scalars
    if column.endswith("_ns"):
        return f"fromUnixTimestamp64Nano(toInt64({int(value)}), 'UTC')"
    if column.endswith("_address"):
        return f"toIPv6('{ipaddress.IPv6Address(bytes(value))}')"
    return f"'{value.decode()}'" if isinstance(value, bytes) else str(int(value))
