"""Bytes of one row on Kafka after compression: `PYTHONPATH=lab python collectors/bench/wire_bytes.py JARS ROWS.pb`.

In: the broker's jars, and a file of rows as `tidegate-collector once --out` wrote it. Each compression has a
topic of its own; the figure is the size of the partition's log, the record batches as they travelled, over the rows.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate_edge.schemas.rows import read_rows
from tidegate_edge.ship.kafka import KafkaSink
from tidegate_edge.ship.kafka_shipper import Destination
from tidegate_edge.ship.spool import Spool
from tidegate_lab.broker import Broker, Jars

DEFAULT = "zstd"


def sent(broker, directory, rows, compression):
    topic = f"wire.{compression}"
    broker.create_topic(topic)
    options = {"compression.type": compression}
    to = Destination(topic, "edge1", "ams1")
    spool = Spool(directory / f"{topic}.spool", 1 << 30)
    sink = KafkaSink(broker.bootstrap["plaintext"], to, options, spool, tell=print, drain_seconds=60)
    cpu = time.process_time()
    sink.write([rows])
    sink.close()
    if sink.shipped.delivered != len(rows):
        raise SystemExit(f"{compression}: {sink.shipped}")
    cpu = time.process_time() - cpu
    size = sum(each.stat().st_size for each in (directory / f"broker/data/{topic}-0").glob("*.log"))
    return {"bytes_per_row": round(size / len(rows), 1), "cpu_us_per_row": round(cpu / len(rows) * 1e6, 2)}


def main():
    jars, file = map(Path, sys.argv[1:])
    rows = read_rows(file.read_bytes())
    with TemporaryDirectory() as name:
        broker = Broker(Jars(jars), Path(name) / "broker")
        broker.start()
        try:
            measured = {each: sent(broker, Path(name), rows, each) for each in (DEFAULT, "lz4", "none")}
        finally:
            broker.close()
    print(
        json.dumps({"rows": len(rows), "wire.bytes_per_row": measured[DEFAULT]["bytes_per_row"], **measured})
    )


if __name__ == "__main__":
    main()
