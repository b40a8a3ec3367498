"""A store of before spools were known keeps its place in a topic, and what a crash left half done there."""

import time

import numpy as np
from confluent_kafka import Producer
from tidegate.schemas.rows import new_rows
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.kafka_ledger import Claim, Range
from tidegate.telemetry.migrate import migrate, migrations
from tidegate.telemetry.store import open_store

TOPIC = "ledger.upgrade"
BEFORE = 10  # the latest migration that knows nothing of spools
EACH = 10


def produce(broker, numbers):
    producer = Producer(broker.settings())
    for number in numbers:
        rows = new_rows(EACH)
        rows["pop"], rows["host"], rows["observed_at_ns"] = b"fra2", b"fra2-edge1", time.time_ns()
        rows["cookie"] = number * EACH + np.arange(EACH)
        headers = {"spool": "ab" * 16, "row": str(number * EACH), "rows": str(EACH)}
        producer.produce(TOPIC, rows.tobytes(), headers=headers, partition=0)
    assert producer.flush(30) == 0


def test_a_done_range_is_not_read_again_and_an_open_one_is(kafka, tmp_path):
    kafka.create_topic(TOPIC)
    produce(kafka, range(3))
    address = Topic(kafka.bootstrap["plaintext"], TOPIC)
    with open_store(f"chdb://{tmp_path / 'store'}") as client, open_topic(address, {}) as reader:
        migrate(client, [each for each in migrations() if each.version <= BEFORE])
        token = Claim(reader.topic_id, (Range(0, 1, 2),)).token
        client.insert(
            "kafka_ranges",
            [[reader.topic_id, TOPIC, 0, 1, 2, 0, token.encode()]],  # offset 0 is done, 1 is claimed
            column_names=["topic_id", "topic", "partition", "first", "next", "done", "token"],
        )
        assert min(migrate(client)) == BEFORE + 1
        report = ingest_topic(client, reader, follow=False)
        assert (report.rows, report.repeated) == (2 * EACH, EACH)
        cookies = client.query("SELECT cookie FROM socket_samples ORDER BY cookie").result_columns[0]
        assert list(cookies) == list(range(EACH, 3 * EACH))
