"""Rows of transfers and of host health through a real topic: each in its table, once, whatever kills the process."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from confluent_kafka import Producer
from tidegate.schemas.rows import new_rows
from tidegate.telemetry.hosts import HEALTH
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_batch import DAMAGED
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.telemetry.transfers import TRANSFER

NOW_NS = time.time_ns()
DAY_NS = 86_400 * 10**9
EACH = 40  # rows a message
TABLES = {"socket_samples": "cookie", "transfers": "connection", "host_health": "observed_at"}


def rows_of(kind, number):
    rows = kind.form.new(EACH)
    rows["pop"], rows["host"] = b"fra2", b"fra2-edge1"
    rows[kind.time] = NOW_NS + number * EACH + np.arange(EACH)
    if kind is HEALTH:
        rows["observed_us"] = 60_000_000
    else:
        rows["connection"], rows["status"] = number * EACH + np.arange(EACH), 200
    return rows


def sockets(number):
    rows = new_rows(EACH)
    rows["pop"], rows["host"], rows["observed_at_ns"] = b"fra2", b"fra2-edge1", NOW_NS
    rows["cookie"] = number * EACH + np.arange(EACH)
    return rows


def produce(broker, topic, batches):
    producer = Producer(broker.settings())
    for number, rows in enumerate(batches):
        producer.produce(
            topic.name, rows if isinstance(rows, bytes) else rows.tobytes(), key=f"host{number % 7}"
        )
    assert producer.flush(30) == 0


@pytest.fixture
def topic(kafka, request):
    made = Topic(kafka.bootstrap["plaintext"], "records." + request.node.name)
    kafka.create_topic(made.name, partitions=3)
    return made


def load(client, topic):
    with open_topic(topic, {}) as reader:
        return ingest_topic(client, reader, follow=False)


def stored(client):
    """Of each table its rows, and how many of them are different."""
    counted = (f"SELECT count(), uniqExact({by}) FROM {table}" for table, by in TABLES.items())  # noqa: S608 - ours
    return [client.query(each).result_rows[0] for each in counted]


def test_a_messages_frame_says_into_which_table_its_rows_go(kafka, topic):
    every = [kind(number) for number in range(6) for kind in (sockets, transfers, health)]
    cut = transfers(9).tobytes()[:-1]
    mixed = transfers(9).tobytes() + health(9).tobytes()
    produce(kafka, topic, [*every, cut, mixed, b""])
    with open_store("chdb://memory") as client:
        migrate(client)
        report = load(client, topic)
        assert (report.messages, report.rows, report.left_out) == (21, 18 * EACH, {DAMAGED: 2})
        assert stored(client) == [(6 * EACH, 6 * EACH)] * 3
        assert load(client, topic).rows == 0
        assert stored(client) == [(6 * EACH, 6 * EACH)] * 3


def test_a_row_of_another_year_cannot_block_the_topic(kafka, topic):
    old = transfers(0)
    old["finished_at_ns"] -= np.arange(EACH, dtype=np.uint64) * np.uint64(30 * DAY_NS)
    produce(kafka, topic, [old, transfers(1)])
    with open_store("chdb://memory") as client:
        migrate(client)
        report = load(client, topic)
        assert report.left_out == {"older than the stream may be": EACH - 2} | (
            {"older than the stream may be": EACH - 1} if time.time_ns() // DAY_NS > NOW_NS // DAY_NS else {}
        )
        assert report.rows == 2 * EACH - sum(report.left_out.values())


def transfers(number):
    return rows_of(TRANSFER, number)


def health(number):
    return rows_of(HEALTH, number)


# Ingests, and dies by SIGKILL when it has inserted into so many of the three tables.
CHILD = """
import os, signal, sys
from tidegate.telemetry import kafka_ingest
from tidegate.telemetry.kafka_address import parse_topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.store import open_store

dsn, address, tables = sys.argv[1:]
inserted = []

def counting(call):
    def wrapped(*arguments):
        call(*arguments)
        inserted.append(1)
        if len(inserted) == int(tables):
            os.kill(os.getpid(), signal.SIGKILL)
    return wrapped

for step in ("insert_days", "insert_records"):
    setattr(kafka_ingest, step, counting(getattr(kafka_ingest, step)))
with open_store(dsn) as client, open_topic(parse_topic(address), {}) as reader:
    kafka_ingest.ingest_topic(client, reader, follow=False)
"""


@pytest.mark.parametrize("tables", [1, 2, 3])
def test_killed_between_two_tables_it_gives_each_its_rows_once(kafka, tmp_path, tables):
    topic = Topic(kafka.bootstrap["plaintext"], f"records.killed.{tables}")
    kafka.create_topic(topic.name, partitions=3)
    produce(kafka, topic, [kind(number) for number in range(5) for kind in (sockets, transfers, health)])
    dsn = f"chdb://{tmp_path}/store"
    with open_store(dsn) as client:
        migrate(client)
    argv = [sys.executable, "-c", CHILD, dsn, f"kafka://{topic.brokers}/{topic.name}", str(tables)]
    killed = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with open_store(dsn) as client:
        report = load(client, topic)
        assert report.repeated == report.rows == 15 * EACH
        assert stored(client) == [(5 * EACH, 5 * EACH)] * 3


def test_the_command_reads_a_topic_of_transfers(kafka, topic, tmp_path):
    produce(kafka, topic, [transfers(number) for number in range(4)])
    dsn = f"chdb://{tmp_path}/store"
    argv = ["tidegate", "--dsn", dsn, "ingest", f"kafka://{topic.brokers}/{topic.name}", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 4 * EACH
    with open_store(dsn) as client:
        assert stored(client)[1] == (4 * EACH, 4 * EACH)
