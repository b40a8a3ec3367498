"""How far a topic is read, kept in the store beside the rows, where both survive or vanish together.

Kafka's own offsets of a consumer group would be a second truth: a store that is restored from a backup, or
replaced, would lack rows that Kafka holds and the group has passed.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from clickhouse_connect.driver.client import Client

from tidegate.errors import MISSING_PART, Failure
from tidegate.json_insertion import insert_json

_COLUMNS = ("topic_id", "topic", "partition", "first", "next", "done", "token")
_SYNCHRONOUS = {"async_insert": 0}


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Offsets of a partition, from `first` until before `next`."""

    partition: int
    first: int
    next: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Ranges whose rows go into the store by one insert. The token names topic, partitions and offsets."""

    topic_id: str
    ranges: tuple[Range, ...]

    @property
    def token(self) -> str:
        """64 hex digits: equal exactly where the ranges are equal."""
        text = ",".join(f"{r.partition}:{r.first}-{r.next}" for r in sorted(self.ranges))
        return hashlib.sha256(f"kafka/{self.topic_id}/{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Progress:
    """Where to go on: the next offset of each partition that was read, and claims that a crash left open."""

    next: dict[int, int]
    open: tuple[Claim, ...]


def progress_of(client: Client, topic_id: str) -> Progress:
    """How far a topic is read; `topic_id` is Kafka's, so that a topic made anew under its name begins anew."""
    found = client.query(
        "SELECT partition, first, next, done, token FROM kafka_ranges FINAL"
        " WHERE topic_id = {topic_id:String} ORDER BY partition",
        parameters={"topic_id": topic_id},
    ).result_rows
    unfinished: dict[bytes, list[Range]] = {}
    for partition, first, end, done, token in found:
        if not done:
            unfinished.setdefault(token, []).append(Range(partition, first, end))
    claims = tuple(Claim(topic_id, tuple(ranges)) for ranges in unfinished.values())
    return Progress({row[0]: row[2] for row in found}, claims)


def claim(client: Client, topic: str, wanted: Claim) -> None:
    """Write down what is inserted next. Until `finish`, a restart inserts these ranges again, and no others.

    Raises:
        Failure: another process has read on in one of the partitions.
    """
    reached = progress_of(client, wanted.topic_id)
    for r in wanted.ranges:
        if reached.next.get(r.partition, r.first) > r.first:
            raise Failure(
                f"another `tidegate ingest` reads topic {topic}: partition {r.partition} is at offset"
                f" {reached.next[r.partition]}, not {r.first}",
                help="run one for a topic and a store",
                exit_code=MISSING_PART,
            )
    _write(client, topic, wanted, wanted.ranges, done=0)


def finish(client: Client, topic: str, claimed: Claim) -> None:
    """The claim's rows are in the store."""
    _write(client, topic, claimed, claimed.ranges, done=1)


def _write(client: Client, topic: str, claimed: Claim, ranges: Iterable[Range], *, done: int) -> None:
    rows = [[claimed.topic_id, topic, r.partition, r.first, r.next, done, claimed.token] for r in ranges]
    insert_json(client, "kafka_ranges", _COLUMNS, rows, _SYNCHRONOUS)
