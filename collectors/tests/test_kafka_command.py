"""`tidegate-collector run --kafka`, as a user runs it: real sockets, a real broker, a clock that jumps."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from tidegate_edge.schemas.rows import read_rows

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
NOBODY = "127.0.0.1:9"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def start(broker, topic, spool, *options, environment=None):
    brokers = broker if isinstance(broker, str) else broker.bootstrap["plaintext"]
    argv = [
        COLLECTOR, "run", "--json", "--pop", "ams1", "--host", "edge1", "--interval", "50ms",
        "--kafka", brokers, "--topic", topic, "--spool", spool, *options,
    ]  # fmt: skip
    environment = {**os.environ, **(environment or {})}
    return subprocess.Popen([str(each) for each in argv], stderr=subprocess.PIPE, text=True, env=environment)


def ended(collector):
    """Its exit code and its counters."""
    _, told = collector.communicate(timeout=60)
    return collector.returncode, json.loads(told.splitlines()[-1])


def arrived(broker, topic):
    consumer = Consumer({**broker.settings(), "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(30).value() for _ in range(broker.end_offsets(topic)[0])]
    consumer.close()
    return read_rows(b"".join(found))


@pytest.mark.usefixtures("connections")
def test_every_row_that_was_polled_arrives(kafka, tmp_path):
    kafka.create_topic("command.run")
    code, counters = ended(start(kafka, "command.run", tmp_path, "--count", "5"))
    rows = arrived(kafka, "command.run")
    assert code == 0
    assert len(rows) == counters["rows"] == counters["kafka_delivered"] >= 5 * 40
    assert counters["kafka_dropped"] == counters["kafka_spooled"] == 0
    assert len(np.unique(rows["observed_at_ns"])) == 5


@pytest.mark.usefixtures("connections")
def test_killed_while_the_broker_is_away_it_loses_nothing(kafka, tmp_path):
    kafka.create_topic("command.killed")
    with start(NOBODY, "command.killed", tmp_path) as collector:
        deadline = time.monotonic() + 30
        while sum(each.stat().st_size for each in tmp_path.glob("*.segment")) < 100_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while "stay in the spool" not in collector.stderr.readline():
            assert collector.poll() is None
        collector.send_signal(signal.SIGKILL)
    with start(NOBODY, "command.killed", tmp_path, "--count", "1") as collector:
        _code, before = ended(collector)
    assert before["kafka_spooled"] > before["rows"]
    _code, after = ended(start(kafka, "command.killed", tmp_path, "--count", "1"))
    rows = arrived(kafka, "command.killed")
    assert len(rows) == before["kafka_spooled"] + after["rows"] == after["kafka_delivered"]
    assert after["kafka_dropped"] == before["kafka_dropped"]
    assert len(np.unique(rows["observed_at_ns"])) >= 4
    assert (np.diff(rows["observed_at_ns"].astype(np.int64)) >= 0).all()


@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime: apt-get install faketime")
@pytest.mark.usefixtures("connections")
def test_a_clock_that_is_stepped_back_loses_nothing(kafka, tmp_path):
    kafka.create_topic("command.clock")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with start(kafka, "command.clock", tmp_path / "spool", environment=environment) as collector:
        seen = 0
        for offset in ("+0", "-2h", "-1h"):
            clock.write_text(offset)
            deadline = time.monotonic() + 30
            while kafka.end_offsets("command.clock")[0] < seen + 3:
                assert time.monotonic() < deadline
            seen = kafka.end_offsets("command.clock")[0]
        collector.send_signal(signal.SIGTERM)
        code, counters = ended(collector)
    rows = arrived(kafka, "command.clock")
    assert code == 0
    assert len(rows) == counters["rows"] == counters["kafka_delivered"]
    hours = np.unique(np.round((rows["observed_at_ns"].astype(np.int64) - time.time_ns()) / 3.6e12))
    assert hours.tolist() == [-2, -1, 0]
    steps = np.diff(rows["observed_at_ns"].astype(np.int64))
    assert (steps < 0).sum() == 1  # it went back once, and its rows stayed in the order of the polls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kafka", "broker"), "is no broker"),
        (("--kafka", NOBODY, "--kafka-config", "/nowhere/kafka.conf"), "No such file"),
        (("--kafka-config", "/nowhere/kafka.conf"), "without a broker"),
    ],
)
def test_wrong_usage_is_told(tmp_path, options, message):
    argv = [
        COLLECTOR,
        "run",
        "--pop",
        "a",
        "--host",
        "b",
        "--out",
        tmp_path / "x",
        "--spool",
        tmp_path / "s",
        *options,
    ]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert message in result.stderr
