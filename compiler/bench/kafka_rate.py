"""How fast a Kafka topic is loaded, against an INSERT SELECT of the same rows; what a row takes in the broker's log.

Broker, client and store share one machine. The loaded rows are random ones in messages of the collector's size; the
row that is weighed is of a simulated fleet, sent by the collector's own sink with its own compression, zstd.
"""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import wire_bytes
from confluent_kafka import Producer
from ingest_rate import ROWS, compared, figures, random_rows
from tidegate.schemas.rows import ROW, ROW_LENGTH
from tidegate.simulate import simulate
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl import read_fleet
from tidegate_edge.ship.kafka import MESSAGE_BYTES
from tidegate_lab.broker import Broker, Jars

ROOT = Path(__file__).parents[2]
JARS = ROOT / "build/kafka"
START = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = 1
TOPIC = "bench.sockets"


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.kafka_over_insert_select": ..., "wire.bytes_per_row": ...}; nothing where there is no broker."""
    if not JARS.is_dir():
        print("no Kafka broker in build/kafka: `make real` fetches it", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        broker = Broker(Jars(JARS), directory / "broker")
        broker.start()
        try:
            return _wire(broker, directory) | _loaded(broker, directory)
        finally:
            broker.close()


def _wire(broker: Broker, directory: Path) -> dict[str, dict[str, object]]:
    paths = simulate(
        read_fleet(ROOT / "inventory"), seed=1, start=START, hours=HOURS, out=directory / "simulated"
    )
    rows = np.fromfile(paths[0], ROW)
    weighed = wire_bytes.sent(broker, directory, rows, wire_bytes.DEFAULT)
    against = (
        f"{ROW_LENGTH} bytes uncompressed; {len(rows)} rows of a simulated fleet, zstd, in the broker's log"
    )
    return {
        "wire.bytes_per_row": {"value": weighed["bytes_per_row"], "unit": "bytes", "against": against},
    }


def _loaded(broker: Broker, directory: Path) -> dict[str, dict[str, object]]:
    broker.create_topic(TOPIC)
    _produce(broker)
    with open_store(f"chdb://{directory}/store") as client:
        migrate(client)

        def load() -> None:
            with open_topic(Topic(broker.bootstrap["plaintext"], TOPIC), {}) as reader:
                ingest_topic(client, reader, follow=False)

        loading, floor = compared(client, ROWS, load)
    return figures("ingest.kafka_", "a topic", ROWS, loading, floor)


def _produce(broker: Broker) -> None:
    data = memoryview(random_rows(ROWS).view(np.uint8))
    length = MESSAGE_BYTES // ROW_LENGTH * ROW_LENGTH
    producer = Producer({**broker.settings(), "compression.type": "zstd", "linger.ms": 20})
    for start in range(0, len(data), length):
        producer.produce(TOPIC, bytes(data[start : start + length]), key="fra2-edge1")
        producer.flush()


if __name__ == "__main__":
    print(measure())
