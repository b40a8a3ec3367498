"""From the collector's sink to the store: a row is there once, though the collector was killed and sent it again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tidegate.telemetry.store import open_store

TIDEGATE = Path(sys.executable).with_name("tidegate")
EACH, MESSAGES = 300, 6  # fewer messages than are in flight at once

# Spools and sends. What the broker acknowledged is not noted until it may be: a kill in between leaves the spool so.
SENDER = """
import sys, time
from pathlib import Path
import numpy as np
from tidegate_edge.schemas.rows import new_rows
from tidegate_edge.ship.kafka import KafkaSink
from tidegate_edge.ship.kafka_shipper import Destination
from tidegate_edge.ship.spool import Spool
from tidegate_edge.ship.spool_position import PositionFile

_, brokers, topic, directory, first, messages, each, notes = sys.argv
save = PositionFile.save
if notes == "no":
    PositionFile.save = lambda self, position: None if position.acknowledged else save(self, position)
to = Destination(topic, "fra2-edge1", "fra2")
sink = KafkaSink(brokers, to, {}, Spool(Path(directory), 1 << 28), tell=lambda line: None)
first, messages, each = int(first), int(messages), int(each)
for at in range(first, first + messages * each, each):
    rows = new_rows(each)
    rows["pop"], rows["host"], rows["observed_at_ns"] = b"fra2", b"fra2-edge1", time.time_ns()
    rows["cookie"] = np.arange(at, at + each)
    sink.write([rows])
print("written", flush=True)
while sink.shipped.spooled:
    time.sleep(0.01)
print("delivered", flush=True)
sys.stdin.readline()
sink.close()
print(sink.shipped.dropped, flush=True)
"""


def send(broker, topic, spool, first, *, until=None):
    """Spool further messages and send; killed at `until`, or ended in good order."""
    notes = "yes" if until is None else "no"
    numbers = map(str, (first, MESSAGES, EACH))
    argv = [sys.executable, "-c", SENDER, broker.bootstrap["plaintext"], topic, str(spool), *numbers, notes]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        for line in sender.stdout:
            if line.strip() == (until or "delivered"):
                break
        if until is None:
            out, _ = sender.communicate("\n", timeout=60)
            assert out == "0\n"
        else:
            sender.send_signal(signal.SIGKILL)
    assert sender.returncode == (0 if until is None else -signal.SIGKILL)


def rows_in(broker, topic):
    """How many rows the topic holds, repeated ones too."""
    consumer = Consumer({**broker.settings(), "group.id": "test"})
    count = 0
    for partition, end in broker.end_offsets(topic).items():
        consumer.assign([TopicPartition(topic, partition, 0)])
        for _ in range(end):
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            count += int(dict(message.headers())["rows"])
    consumer.close()
    return count


def ingest(broker, topic, dsn):
    address = f"kafka://{broker.bootstrap['plaintext']}/{topic}"
    ran = subprocess.run(
        [TIDEGATE, "--dsn", dsn, "ingest", "--json", address],
        capture_output=True, text=True, check=True, timeout=120, env=os.environ,
    )  # fmt: skip
    return json.loads(ran.stdout)


@pytest.mark.parametrize("ingested", ["each-time", "at-the-end"])
def test_a_collector_killed_between_acknowledgement_and_note_doubles_nothing(kafka, tmp_path, ingested):
    dsn, spool, topic = f"chdb://{tmp_path / 'store'}", tmp_path / "spool", f"rows.once.{ingested}"
    kafka.create_topic(topic, partitions=3)
    offered, reports = 0, []
    # Killed when all is acknowledged and nothing of it noted, while it sends, and when all of it is sent once more.
    for until in ("delivered", "written", "delivered", None):
        send(kafka, topic, spool, offered, until=until)
        offered += MESSAGES * EACH
        if ingested == "each-time" or until is None:
            reports.append(ingest(kafka, topic, dsn))
    loaded, sent_again = (sum(report[name] for report in reports) for name in ("rows", "sent_again"))
    assert loaded == offered
    assert sent_again == rows_in(kafka, topic) - offered >= 3 * MESSAGES * EACH
    assert all(report["unnumbered"] == report["gone_back"] == 0 for report in reports)
    with open_store(dsn) as client:
        counted = client.query(
            "SELECT count(), uniqExact(cookie), max(cookie) FROM socket_samples"
        ).result_rows
    assert counted == [(offered, offered, offered - 1)]
