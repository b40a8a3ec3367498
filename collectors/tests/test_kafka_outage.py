"""A broker that is stopped for half a minute and started again on its data, under all that a host sends."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from tidegate_edge.schemas.hosts import HOSTS
from tidegate_edge.schemas.rows import read_rows
from tidegate_edge.schemas.transfers import TRANSFERS

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
OUTAGE_S = 30
TOPICS = {"run": "outage.sockets", "accesslog": "outage.transfers", "health": "outage.hosts"}
LINE = {
    "format": "tidegate-1", "msec": "1790000000.500", "remote_addr": "198.51.100.7", "remote_port": "50000",
    "server_addr": "203.0.113.1", "server_port": "443", "connection_requests": "1", "status": "200",
    "bytes_sent": "1000000", "request_time": "1.000", "tcpinfo_rtt": "", "tcpinfo_rttvar": "",
    "tcpinfo_snd_cwnd": "", "tcpinfo_rcv_space": "",
}  # fmt: skip


def log(path, numbers):
    with path.open("a") as file:
        file.write("".join(f"{json.dumps(LINE | {'connection': str(number)})}\n" for number in numbers))


def awaits(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def start(broker, directory, command, *options):
    argv = [COLLECTOR, command, *options, "--json", "--pop", "ams1", "--host", "edge1", "--interval", "200ms"]
    argv += [
        "--kafka",
        broker.bootstrap["plaintext"],
        "--topic",
        TOPICS[command],
        "--spool",
        directory / command,
    ]
    return subprocess.Popen([str(each) for each in argv], stderr=subprocess.PIPE, text=True)


def ended(process):
    """Its counters; they are of the spool, but for `rows`."""
    _, text = process.communicate(timeout=60)
    assert process.returncode == 0, text
    return json.loads(text.splitlines()[-1])


def arrived(broker, topic):
    consumer = Consumer({**broker.settings(), "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(30).value() for _ in range(broker.end_offsets(topic)[0])]
    consumer.close()
    return b"".join(found)


@pytest.mark.usefixtures("connections")
def test_a_broker_that_is_stopped_for_half_a_minute_costs_no_row(new_broker, tmp_path):
    broker = new_broker()
    for topic in TOPICS.values():
        broker.create_topic(topic)
    lines = iter(range(10**9))
    transfers = tmp_path / "tidegate.log"
    state = ("--state-dir", tmp_path / "state")
    processes = {
        "run": start(broker, tmp_path, "run"),
        "accesslog": start(broker, tmp_path, "accesslog", transfers, "--follow", *state),
        "health": start(broker, tmp_path, "health"),
    }
    written = 0
    try:

        def all_have(more):
            """Something of every kind has arrived; meanwhile the server logs."""
            nonlocal written
            log(transfers, [next(lines) for _ in range(10)])
            written += 10
            return all(broker.end_offsets(topic)[0] >= more[topic] for topic in TOPICS.values())

        awaits(lambda: all_have(dict.fromkeys(TOPICS.values(), 2)))
        broker.stop()
        since, stopped_ns = time.monotonic(), time.time_ns()
        while time.monotonic() - since < OUTAGE_S:
            log(transfers, [next(lines) for _ in range(10)])
            written += 10
            time.sleep(0.5)
        back_ns = time.time_ns()
        assert all(process.poll() is None for process in processes.values())
        broker.start()
        before = {topic: broker.end_offsets(topic)[0] for topic in TOPICS.values()}
        awaits(lambda: all_have({topic: end + 1 for topic, end in before.items()}))
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        counted = {command: [ended(process)] for command, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait(60)
    last = {"run": ("--count", "1"), "health": ("--count", "1"), "accesslog": (transfers, *state)}
    deadline = time.monotonic() + 60
    for command, options in last.items():  # what a busy machine did not deliver before the end
        while len(counted[command]) == 1 or counted[command][-1]["kafka_spooled"]:
            assert time.monotonic() < deadline
            counted[command].append(ended(start(broker, tmp_path, command, *options)))
    rows = {
        "run": read_rows(arrived(broker, TOPICS["run"])),
        "accesslog": TRANSFERS.read(arrived(broker, TOPICS["accesslog"])),
        "health": HOSTS.read(arrived(broker, TOPICS["health"])),
    }
    for command, found in rows.items():
        end = counted[command][-1]
        assert len(found) == sum(each["rows"] for each in counted[command]) == end["kafka_delivered"]
        assert end["kafka_dropped"] == 0
        assert len({row.tobytes() for row in found}) == len(found)
    assert rows["accesslog"]["connection"].tolist() == list(range(written))
    for command in ("run", "health"):
        times = np.unique(rows[command]["observed_at_ns"])
        assert ((times > stopped_ns) & (times < back_ns)).sum() >= OUTAGE_S / 2  # they went on meanwhile
