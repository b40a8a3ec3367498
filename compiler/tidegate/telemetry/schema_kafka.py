"""What lets a ClickHouse server read Tidegate's topics by itself: Kafka engine tables, and views behind them.

A message is whole delimited rows of constant length, so the engine reads them as RowBinary: the bytes of protobuf's
frame are columns too, and a row whose frame is not ours is left out. Per topic: `kafka_T` (the engine) is fed by a
view into `kafka_T_read` (engine Null), on which stand three views: rows that are admitted go to their table, others
are counted, messages that cannot be read are kept. The feeding view is made last and dropped first, so that no
message passes while one of the three is missing. None of these tables holds anything: they may be made anew.
"""

import hashlib
import re
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure
from tidegate.telemetry.schema_form import Form
from tidegate.telemetry.schema_topics import TOPICS, TopicRows

GROUP: Final = "tidegate-clickhouse"
HEAD_BYTES: Final = 2048  # of a damaged message: four rows, enough to see what it is
_COLLECTION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FEEDING: Final = re.compile(r"CREATE MATERIALIZED VIEW \w+_feed\b")
_OF_MESSAGE: Final = (
    "topic LowCardinality(String), partition UInt64, offset UInt64, error String, raw_message String"
)
_SELECTED: Final = ", ".join(
    f"_{each} AS {each}" for each in ("topic", "partition", "offset", "error", "raw_message")
)


def kafka_definition(collection: str, form: Form) -> tuple[str, ...]:
    """The statements that make tables and views anew, in order; they may be repeated.

    Brokers, security protocol, SASL mechanism, user and password are the server's named collection, so that no
    secret stands in a statement.

    Args:
        collection: the named collection.
        form: of the store.

    Raises:
        Failure: not the name of a named collection.
    """
    if not _COLLECTION.fullmatch(collection):
        raise Failure(
            f"`{collection}` is not the name of a named collection",
            help="write it in the server's configuration; docs/clickhouse.md shows one",
        )
    return tuple(part for topic in TOPICS for part in _topic(topic, collection, form))


def kafka_tables_differ(client: Client, collection: str, form: Form) -> bool:
    """Whether a store's Kafka tables and views are missing or not those of this Tidegate. Changes nothing."""
    feeds = [_feed(topic) for topic in TOPICS]
    found = client.query(
        "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name IN {feeds:Array(String)}",
        parameters={"feeds": feeds},
    ).result_rows
    digest = _digest(kafka_definition(collection, form))
    return [str(comment) for (comment,) in found] != [digest] * len(feeds)


def make_kafka_tables(client: Client, collection: str, form: Form) -> bool:
    """Make tables and views anew where they are not as they should be; returns whether they were not.

    Messages that arrive in between wait in Kafka: the consumer group keeps its place.
    """
    if not kafka_tables_differ(client, collection, form):
        return False
    for statement in stamped(kafka_definition(collection, form)):
        client.command(statement)
    return True


def stamped(statements: tuple[str, ...]) -> tuple[str, ...]:
    """The statements; feeding views, which are made last, carry the definition's digest: all before them was made."""
    digest = _digest(statements)
    return tuple(
        f"{statement}\nCOMMENT '{digest}'" if _FEEDING.match(statement) else statement
        for statement in statements
    )


def _topic(topic: TopicRows, collection: str, form: Form) -> tuple[str, ...]:
    source, read, feed = f"kafka_{topic.name}", f"kafka_{topic.name}_read", _feed(topic)
    admitted, left_out, damaged = (f"{source}_{each}" for each in ("admitted", "left_out", "damaged"))
    on = form.on_cluster
    structure = ",\n    ".join(topic.structure)
    taken = "SELECT\n    " + ",\n    ".join(f"{sql} AS {name}" for name, sql in topic.columns.items())
    reasons = ",\n    ".join(f"NOT ({holds}), '{reason}'" for reason, holds in topic.checks.items())
    reason = f"multiIf(\n    {reasons},\n    '')"
    drops = [
        f"DROP TABLE IF EXISTS {name}{on} SYNC" for name in (feed, admitted, left_out, damaged, read, source)
    ]
    engine = (
        f"Kafka({collection}, kafka_topic_list = '{topic.topic}', kafka_group_name = '{GROUP}',"
        " kafka_format = 'RowBinary', kafka_handle_error_mode = 'stream')"
    )
    counted = f"SELECT toStartOfHour(now('UTC')) AS hour, topic, {reason} AS reason, count() AS rows"
    by = "GROUP BY hour, topic, reason"
    head = f"length(raw_message) AS bytes, substring(raw_message, 1, {HEAD_BYTES}) AS head"
    kept = f"SELECT topic, partition, offset, error, {head}"
    view, readable = "CREATE MATERIALIZED VIEW", "WHERE error = ''"
    return (
        *drops,
        f"CREATE TABLE {source}{on}\n(\n    {structure}\n)\nENGINE = {engine}",
        f"CREATE TABLE {read}{on}\n(\n    {structure},\n    {_OF_MESSAGE}\n)\nENGINE = Null",
        f"{view} {admitted}{on} TO {topic.table} AS\n{taken}\nFROM {read}\n{readable} AND {reason} = ''",
        f"{view} {left_out}{on} TO kafka_left_out AS\n{counted}\nFROM {read}\n{readable} AND reason != ''\n{by}",
        f"{view} {damaged}{on} TO kafka_damaged AS\n{kept}\nFROM {read}\nWHERE error != ''",
        f"{view} {feed}{on} TO {read} AS\nSELECT *, {_SELECTED}\nFROM {source}",
    )


def _feed(topic: TopicRows) -> str:
    return f"kafka_{topic.name}_feed"


def _digest(statements: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()
