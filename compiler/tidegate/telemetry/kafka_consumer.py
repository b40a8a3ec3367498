"""Reads a topic's partitions from given offsets, all of them by one process, without a consumer group."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tidegate.errors import MISSING_PART, Failure
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_batch import Batch
from tidegate.telemetry.kafka_ledger import Range
from tidegate.telemetry.kafka_spools import Headers

ANSWER_S: Final = 30.0
LOOK_EVERY_S: Final = 60.0
_LOOK_S: Final = 5.0
_PAUSE_S: Final = 0.2
# What is said of a partition while a broker restarts, or while the partition is new.
_PASSING: Final = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
_FETCHED_KIB: Final = 65_536
_ANSWER_BYTES: Final = 16 * 2**20  # compressed; of one broker
_OURS: Final[dict[str, Any]] = {
    "group.id": "tidegate-ingest",  # librdkafka wants one; nothing is committed to it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "queued.max.messages.kbytes": _FETCHED_KIB,
    # By default an answer brings one message of ours, and a full queue ends all fetching for a second.
    "fetch.max.bytes": _ANSWER_BYTES,
    "max.partition.fetch.bytes": _ANSWER_BYTES // 2,
    "fetch.queue.backoff.ms": 10,
    "allow.auto.create.topics": False,
}


class TopicReader:
    """A topic that is read from given offsets on.

    Attributes:
        topic: its name.
        topic_id: the identity that Kafka gave it; a topic that is deleted and made again has another.
        skipped: offsets that were due and that Kafka had deleted already.
    """

    def __init__(self, consumer: Consumer, topic: str, topic_id: str, partitions: Iterable[int]) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.skipped = 0
        self._consumer = consumer
        self._partitions = tuple(partitions)
        self._next: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._answered = self._looked = time.monotonic()

    def start(self, positions: Mapping[int, int]) -> None:
        """Read every partition from its position, or from its beginning where it has none."""
        bounds = {p: self._bounds(p) for p in self._partitions}
        self._ends = {p: end for p, (_, end) in bounds.items()}
        self._next = {p: self._begin(p, positions.get(p, 0), bounds[p]) for p in self._partitions}
        self._answered = time.monotonic()
        self._assign(self._next)

    def take_new_partitions(self) -> None:
        """Read those too that the topic has got since, from their beginning; asks the brokers once a minute."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        try:
            found = self._consumer.list_topics(self.topic, _LOOK_S).topics[self.topic].partitions
        except KafkaException:  # whether they can be reached, reading tells
            return
        if new := [each for each in found if each not in self._next]:
            self._next |= {each: self._begin(each, 0, self._bounds(each)) for each in new}
            self._assign(self._next)

    def message(self, wait_s: float) -> tuple[int, int, bytes, Headers] | None:
        """Partition, offset, value and headers of the next message, if one comes.

        One at a time: of many, librdkafka copies the last before the first is looked at, and none is still cached.

        Raises:
            Failure: the brokers refuse, or have not answered for `ANSWER_S` though messages are due.
        """
        message = self._consumer.poll(wait_s)
        if message is None:
            return None
        self._answered = time.monotonic()
        error = message.error()
        if error is None:
            partition, offset = _place(message)
            self._next[partition] = offset + 1
            return partition, offset, message.value() or b"", dict(message.headers() or {})
        if error.code() == KafkaError._PARTITION_EOF:
            # The end's offset: what lies before it and was no message will never come.
            partition, offset = _place(message)
            self._next[partition] = max(self._next[partition], offset)
        elif not error.retriable():
            raise _unreachable(self.topic, error.str())
        return None

    def at_end(self) -> bool:
        """Whether all is read that the topic held at the start."""
        if all(self._next[p] >= end for p, end in self._ends.items()):
            return True
        if time.monotonic() - self._answered > ANSWER_S:
            raise _unreachable(self.topic, f"no answer for {ANSWER_S:.0f} s")
        return False

    def read_again(self, ranges: Iterable[Range], into: Batch) -> Batch:
        """Add the messages of these ranges to a batch, as far as the topic still has them."""
        due = {r.partition: r.next for r in ranges}
        self._next = {
            r.partition: self._begin(r.partition, r.first, self._bounds(r.partition)) for r in ranges
        }
        self._ends = due
        self._answered = time.monotonic()
        self._assign(self._next)
        while not self.at_end():
            found = self.message(1.0)
            if found and found[1] < due[found[0]]:
                into.add(*found)
        return into

    def _assign(self, positions: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(self.topic, p, offset) for p, offset in positions.items()])

    def _begin(self, partition: int, position: int, bounds: tuple[int, int]) -> int:
        """Where to read from: the position, or the oldest message where Kafka deleted what was due."""
        oldest, end = bounds
        if position > end:
            raise Failure(
                f"topic {self.topic} has lost messages that are in the store: partition {partition} ends at"
                f" offset {end}, and {position} is due",
                help="find out what cut the topic; reading it from the beginning would store its rows twice",
                exit_code=MISSING_PART,
            )
        if position < oldest and position:
            self.skipped += oldest - position
        return max(position, oldest)

    def _bounds(self, partition: int) -> tuple[int, int]:
        """The oldest offset and the one after the newest."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                found = self._consumer.get_watermark_offsets(TopicPartition(self.topic, partition), ANSWER_S)
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                    raise _unreachable(self.topic, error.args[0].str()) from error
                time.sleep(_PAUSE_S)
            else:
                return int(found[0]), int(found[1])


@contextmanager
def open_topic(topic: Topic, settings: Mapping[str, str]) -> Iterator[TopicReader]:
    """A reader of a topic; `settings` are librdkafka's, of TLS and SASL for instance.

    Raises:
        Failure: a setting is wrong (exit 2); the brokers do not answer, refuse, or have no such topic (exit 3).
    """
    common: dict[str, Any] = {**settings, "bootstrap.servers": topic.brokers, "logger": _silent()}
    try:
        admin = AdminClient(common)
        described = admin.describe_topics(TopicCollection([topic.name]), request_timeout=ANSWER_S)
        found = described[topic.name].result()
        consumer = Consumer({**common, **_OURS})
    except KafkaException as error:
        code = error.args[0]
        if code.code() == KafkaError._INVALID_ARG:
            raise Failure(f"Kafka's client refuses a setting: {code.str()}") from error
        raise _unreachable(topic.name, code.str()) from error
    try:
        yield TopicReader(consumer, topic.name, str(found.topic_id), [p.id for p in found.partitions])
    finally:
        consumer.close()


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    if partition is None or offset is None:
        raise ValueError(message)
    return partition, offset


def _silent() -> logging.Logger:
    """What the client says of its connections; errors that matter become failures."""
    logger = logging.getLogger("tidegate.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _unreachable(topic: str, reason: str) -> Failure:
    return Failure(
        f"Kafka topic {topic} cannot be read: {reason}",
        help="check brokers, topic and --kafka-config",
        exit_code=MISSING_PART,
    )
