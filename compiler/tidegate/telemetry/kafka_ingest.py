"""Loads a Kafka topic into socket_samples: every message once, wherever the process died before.

One step is: gather messages, claim their offsets in the store, insert their rows under a token made of those
offsets, mark the claim as done. After a crash the claim that is open names the offsets to read again; their insert
has the same token, so that ClickHouse drops it where it had arrived. Kafka's consumer groups are not used.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.schemas.rows import ROW_LENGTH
from tidegate.telemetry.admission import admit
from tidegate.telemetry.block import BLOCK_ROWS
from tidegate.telemetry.insertion import insert_rows
from tidegate.telemetry.kafka_batch import Batch, rows_of
from tidegate.telemetry.kafka_consumer import TopicReader
from tidegate.telemetry.kafka_ledger import Claim, claim, finish, progress_of

BLOCK_BYTES: Final = BLOCK_ROWS * ROW_LENGTH
# A stream's rows are fresh. The bound keeps one insert within the 100 partitions (days) that ClickHouse takes.
OLDEST_NS: Final = 30 * 86_400 * 10**9
_DAY_NS: Final = 86_400 * 10**9


@dataclass(slots=True)
class KafkaReport:
    """What became of a topic's messages in this run.

    `rows` were inserted, `repeated` of them for a claim that a crash had left open: the store may have had them.
    `left_out` counts rows that were not admitted and messages that are damaged, by reason. `lost`: offsets that
    the topic no longer had when they were due.
    """

    topic: str
    messages: int = 0
    rows: int = 0
    repeated: int = 0
    lost: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def ingest_topic(
    client: Client,
    reader: TopicReader,
    *,
    follow: bool,
    block_s: float = 5.0,
    stopped: Callable[[], bool] = lambda: False,
    on_progress: Callable[[KafkaReport], None] = lambda _: None,
) -> KafkaReport:
    """Load what the topic holds now, or until `stopped`.

    Args:
        client: of an open and migrated store.
        reader: of the topic, connected.
        follow: wait for further messages at the end.
        block_s: longest time, in seconds, from a block's first message to its insert.
        stopped: asked between two steps; a block that is being inserted is finished first.
        on_progress: called after each block.

    Raises:
        Failure: the brokers or the store do not answer, or another process reads the same topic into it.
    """
    report = KafkaReport(reader.topic)
    progress = progress_of(client, reader.topic_id)
    for open_claim in progress.open:
        _repeat(client, reader, open_claim, report)
        on_progress(report)
    reader.start(progress.next)
    due = Batch()
    begun = time.monotonic()
    while not stopped():
        if not due.values:
            begun = time.monotonic()
        for message in reader.messages(wait_s=0.2):
            due.add(*message)
        at_end = not follow and reader.at_end()
        if due.values and (at_end or due.size >= BLOCK_BYTES or time.monotonic() - begun >= block_s):
            _load(client, reader, due, report)
            on_progress(report)
            due = Batch()
        if at_end:
            break
    report.lost += reader.skipped
    return report


def _load(client: Client, reader: TopicReader, due: Batch, report: KafkaReport) -> None:
    wanted = due.claim(reader.topic_id)
    claim(client, reader.topic, wanted)
    _insert(client, wanted, due, report)
    finish(client, reader.topic, wanted)


def _repeat(client: Client, reader: TopicReader, claimed: Claim, report: KafkaReport) -> None:
    before = report.rows
    _insert(client, claimed, reader.read_again(claimed.ranges), report)
    finish(client, reader.topic, claimed)
    report.repeated += report.rows - before


def _insert(client: Client, claimed: Claim, due: Batch, report: KafkaReport) -> None:
    rows, damaged = rows_of(due.values)
    now_ns = time.time_ns()
    admitted = admit(rows, now_ns, earliest_ns=now_ns // _DAY_NS * _DAY_NS - OLDEST_NS)
    if len(admitted.rows):
        insert_rows(client, admitted.rows, claimed.token)
    report.messages += len(due.values)
    report.rows += len(admitted.rows)
    report.left_out.update(damaged)
    report.left_out.update(admitted.left_out)
