"""Loads a Kafka topic into the tables of its rows: every message once, wherever the process died before.

One step is: gather messages, claim their offsets in the store, insert their rows under a token made of those
offsets, mark the claim as done. After a crash the claim that is open names the offsets to read again; their insert
has the same token, so that ClickHouse drops it where it had arrived. Kafka's consumer groups are not used. Rows that
a host sends again, in another message, are told by their numbers (`kafka_spools`).

While the store takes one block the next one is gathered and decoded; it is claimed after the former is done.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.schemas.records import Records
from tidegate.schemas.rows import ROW_LENGTH
from tidegate.telemetry.admission import DAY_NS
from tidegate.telemetry.block import BLOCK_ROWS
from tidegate.telemetry.decode import admit
from tidegate.telemetry.hollow_tokens import TIMES, Sample, insert_all, may_be_hollow, sample_of
from tidegate.telemetry.insertion import TABLE, insert_days
from tidegate.telemetry.kafka_batch import Batch
from tidegate.telemetry.kafka_consumer import TopicReader
from tidegate.telemetry.kafka_ledger import Claim, claim, finish, progress_of
from tidegate.telemetry.kafka_spool_ledger import read_spools, write_spools
from tidegate.telemetry.kafka_spools import Spools
from tidegate.telemetry.native import NativeBlock
from tidegate.telemetry.record_insertion import insert_records
from tidegate.telemetry.record_kinds import RECORD_KINDS, RecordFormat

BLOCK_BYTES: Final = BLOCK_ROWS * ROW_LENGTH
_OVER: Final = 2**20 // ROW_LENGTH  # rows of a block's last message, at Kafka's default bound of one
# A stream's rows are fresh. The bound keeps one insert within the 100 partitions (days) that ClickHouse takes.
OLDEST_NS: Final = 30 * DAY_NS
_WAIT_S: Final = 0.2


@dataclass(slots=True)
class KafkaReport:
    """What became of a topic's messages in this run.

    `rows` were inserted, `repeated` of them for a claim that a crash had left open: the store may have had them.
    `left_out` counts rows that were not admitted and messages that are damaged, by reason. `lost`: offsets that
    the topic no longer had when they were due. `sent_again`: rows that a host sent twice, the second time: they are
    not among `rows`. `unnumbered` and `gone_back`: messages of which this can't be told, as `Batch` has them.
    """

    topic: str
    messages: int = 0
    rows: int = 0
    repeated: int = 0
    lost: int = 0
    sent_again: int = 0
    unnumbered: int = 0
    gone_back: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A block on its way: its offsets, its admitted rows, and what it adds to the report.

    `sockets` are admitted of the batch's, `rows` of all kinds. `samples`, by table, where the store may drop what it
    lacks.
    """

    claim: Claim
    sockets: int
    records: dict[RecordFormat, Records]
    samples: dict[str, Sample | None]
    due: Batch
    rows: int
    left_out: Counter[str]


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

    def loaded(found: _Decoded) -> None:
        report.messages += found.due.messages
        report.rows += found.rows
        report.sent_again += found.due.sent_again
        report.unnumbered += found.due.unnumbered
        report.gone_back += found.due.gone_back
        report.left_out.update(found.left_out)
        report.lost = reader.skipped
        on_progress(report)

    progress = progress_of(client, reader.topic_id)
    spools = read_spools(client, reader.topic_id)
    doubted = frozenset(table for table in TIMES if may_be_hollow(client, table))
    with ThreadPoolExecutor(1) as engine:
        for open_claim in progress.open:
            again = _decode(
                reader.read_again(open_claim.ranges, _begin(spools, NativeBlock())), open_claim, doubted
            )
            report.repeated += again.rows
            loaded(_insert(client, reader.topic, again))
        reader.start(progress.next)
        loading: Future[_Decoded] | None = None
        for due in _due(reader, spools, follow=follow, block_s=block_s, stopped=stopped):
            found = _decode(due, due.claim(reader.topic_id), doubted) if due else None
            if loading is not None and (found is not None or loading.done()):
                loaded(loading.result())
                loading = None
            if found is not None:
                loading = engine.submit(_load, client, reader.topic, found)
        if loading is not None:
            loaded(loading.result())
    report.lost = reader.skipped
    return report


def _due(
    reader: TopicReader, spools: Spools, *, follow: bool, block_s: float, stopped: Callable[[], bool]
) -> Iterator[Batch | None]:
    """Batches as they become due, None where none is yet. A batch's memory is the next one's but one."""
    blocks = cycle((NativeBlock(), NativeBlock()))
    due = _begin(spools, next(blocks))
    begun = time.monotonic()
    while not stopped():
        if not due.messages:
            begun = time.monotonic()
        if follow:
            reader.take_new_partitions()
        if message := reader.message(_WAIT_S):
            due.add(*message)
        at_end = not follow and reader.at_end()
        if due.messages and (at_end or due.size >= BLOCK_BYTES or time.monotonic() - begun >= block_s):
            yield due
            due = _begin(spools, next(blocks))
        else:
            yield None
        if at_end:
            return


def _begin(spools: Spools, block: NativeBlock) -> Batch:
    block.reserve(BLOCK_ROWS + _OVER)
    return Batch(spools, block)


def _decode(due: Batch, claimed: Claim, doubted: Collection[str]) -> _Decoded:
    now_ns = time.time_ns()
    earliest_ns = now_ns // DAY_NS * DAY_NS - OLDEST_NS
    judged = admit(due.sockets, now_ns, earliest_ns)
    left_out = Counter(due.left_out) + Counter(judged.left_out)
    records = {}
    for kind, rows in due.records.items():
        admitted = RECORD_KINDS[kind].admit(rows, now_ns, earliest_ns)
        records[kind] = admitted.rows
        left_out.update(admitted.left_out)
    count = judged.count + sum(map(len, records.values()))
    rows_of = {RECORD_KINDS[kind].table: rows for kind, rows in records.items()}
    samples = {table: sample_of(table, rows) for table, rows in rows_of.items() if table in doubted}
    if TABLE in doubted:
        samples[TABLE] = sample_of(TABLE, due.sockets.columns)
    return _Decoded(claimed, judged.count, records, samples, due, count, left_out)


def _load(client: Client, topic: str, found: _Decoded) -> _Decoded:
    claim(client, topic, found.claim)
    return _insert(client, topic, found)


def _insert(client: Client, topic: str, found: _Decoded) -> _Decoded:
    token = found.claim.token
    if found.sockets:
        insert_all(client, token, found.samples.get(TABLE), partial(insert_days, client, found.due.sockets))
    for name, rows in found.records.items():
        kind = RECORD_KINDS[name]
        insert_all(client, token, found.samples.get(kind.table), partial(insert_records, client, kind, rows))
    write_spools(client, found.claim.topic_id, found.due.came, time.time_ns())
    finish(client, topic, found.claim)
    return found
