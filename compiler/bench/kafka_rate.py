"""How fast a Kafka topic is loaded, against an INSERT SELECT of the same rows; what a row takes in the broker's log.

Broker, client and store share one machine. The collector's own sink sends the rows, in polls of a busy host, with its
own compression, zstd: those of `ingest_rate`, and an hour of a simulated fleet that is weighed.
"""

import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import wire_bytes
from ingest_rate import LOADS, ROOT, ROWS, compared, figures
from tidegate.schemas.rows import ROW, ROW_LENGTH
from tidegate.simulate import simulate
from tidegate_dsl import read_fleet
from tidegate_edge.ship.kafka import KafkaSink
from tidegate_edge.ship.kafka_shipper import Destination
from tidegate_edge.ship.spool import Spool
from tidegate_lab.broker import Broker, Jars

JARS = ROOT / "build/kafka"
START = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = 1
POLL_ROWS = 20_000
SPOOL_BYTES = 2**30
DRAIN_SECONDS = 120.0


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.kafka_over_insert_select": ..., "wire.bytes_per_row": ...}; nothing where there is no broker."""
    if not JARS.is_dir():
        print("no Kafka broker in build/kafka: `make real` fetches it", file=sys.stderr)
        return {}
    directory = Path(tempfile.mkdtemp())  # stays, as those of `ingest_rate`
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
    found: dict[str, dict[str, object]] = {}
    for kind, rows in LOADS.items():
        topic = f"bench.{kind}sockets"
        stores = directory / topic
        stores.mkdir()
        broker.create_topic(topic)
        _produce(broker, stores, topic, rows(ROWS))
        runs = compared(stores, ROWS, f"{broker.bootstrap['plaintext']}/{topic}")
        found |= figures(f"ingest.kafka_{kind}", "a topic", ROWS, runs)
    return found


def _produce(broker: Broker, directory: Path, topic: str, rows: npt.NDArray[np.void]) -> None:
    spool = Spool(directory / "spool", SPOOL_BYTES)
    to = Destination(topic, "fra2-edge1", "fra2")
    sink = KafkaSink(broker.bootstrap["plaintext"], to, {}, spool, tell=_say, drain_seconds=DRAIN_SECONDS)
    for start in range(0, len(rows), POLL_ROWS):
        sink.write([rows[start : start + POLL_ROWS]])
    sink.close()
    if sink.shipped.delivered != len(rows):
        raise RuntimeError(f"{len(rows)} rows were to be sent: {sink.shipped}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tempfile.tempdir:
        print(json.dumps(measure(), indent=2))
