"""Transfers and host health on their way to a real broker: as sockets' rows, each to its topic, none lost."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tidegate_edge.schemas.hosts import HOSTS
from tidegate_edge.schemas.transfers import TRANSFERS
from tidegate_edge.ship.spool import Spool

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
OURS = ("--pop", "ams1", "--host", "edge1.ams1.example")
NOBODY = "127.0.0.1:9"  # discard (RFC 863): nothing listens there


def line(number):
    return json.dumps(
        {
            "format": "tidegate-1", "msec": f"{1_790_000_000 + number}.500", "remote_addr": "198.51.100.7",
            "remote_port": "50000", "server_addr": "203.0.113.1", "server_port": "443", "connection": str(number),
            "connection_requests": "1", "status": "200", "bytes_sent": "1000000", "request_time": "1.000",
            "tcpinfo_rtt": "20000", "tcpinfo_rttvar": "500", "tcpinfo_snd_cwnd": "90", "tcpinfo_rcv_space": "14480",
        }
    )  # fmt: skip


def log(path, numbers):
    with path.open("a") as file:
        file.write("".join(f"{line(number)}\n" for number in numbers))


def awaits(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def accesslog(directory, brokers, *options):
    argv = [
        COLLECTOR,
        "accesslog",
        directory / "tidegate.log",
        "--state-dir",
        directory / "state",
        "--json",
        *OURS,
    ]
    argv += ["--kafka", brokers, "--spool", directory / "spool", "--interval", "20ms", *options]
    return subprocess.Popen([str(each) for each in argv], stderr=subprocess.PIPE, text=True)


def address_of_metrics(process):
    """What it tells of them, between lines of the broker."""
    return next(line.split()[1] for line in process.stderr if line.startswith("metrics: "))


def ended(process):
    _, told = process.communicate(timeout=60)
    return process.returncode, json.loads(told.splitlines()[-1])


def messages(broker, topic):
    consumer = Consumer({**broker.settings(), "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(30) for _ in range(broker.end_offsets(topic)[0])]
    consumer.close()
    return found


def rows(broker, topic, form):
    return form.read(b"".join(each.value() for each in messages(broker, topic)))


def test_transfers_come_as_whole_rows_that_say_whose_they_are(kafka, tmp_path):
    kafka.create_topic("streams.transfers")
    log(tmp_path / "tidegate.log", range(9000))
    brokers = kafka.bootstrap["plaintext"]
    code, told = ended(accesslog(tmp_path, brokers, "--topic", "streams.transfers"))
    assert code == 0
    assert (told["rows"], told["kafka_delivered"], told["kafka_dropped"], told["kafka_spooled"]) == (
        9000,
        9000,
        0,
        0,
    )
    found = rows(kafka, "streams.transfers", TRANSFERS)
    assert found["connection"].tolist() == list(range(9000))
    first = messages(kafka, "streams.transfers")[0]
    headers = dict(first.headers())
    assert (first.key(), headers["pop"], headers["schema_version"]) == (b"edge1.ams1.example", b"ams1", b"1")
    assert int(headers["rows"]) * TRANSFERS.length == len(first.value()) <= 900_000


def test_transfers_wait_for_a_broker_that_is_away_over_the_death_of_their_reader(kafka, tmp_path):
    kafka.create_topic("streams.away")
    log(tmp_path / "tidegate.log", range(500))
    with accesslog(tmp_path, NOBODY, "--topic", "streams.away", "--follow") as reader:
        awaits(lambda: list((tmp_path / "state").glob("*.json")))
        log(tmp_path / "tidegate.log", range(500, 700))
        reader.kill()
    log(tmp_path / "tidegate.log", range(700, 1000))
    code, told = ended(accesslog(tmp_path, kafka.bootstrap["plaintext"], "--topic", "streams.away"))
    assert code == 0
    assert told["kafka_dropped"] == told["kafka_spooled"] == 0
    found = rows(kafka, "streams.away", TRANSFERS)["connection"]
    assert len(found) == told["kafka_delivered"]
    assert sorted(set(found.tolist())) == list(range(1000))


# Runs the command, which is killed, or whose disk refuses, where the log's position is about to be kept.
CHILD = """
import os, signal, sys
from tidegate_edge.accesslog.position import Positions
from tidegate_edge.collector import main
from tidegate_edge.ship.spool import Spool

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def refused(*_):
    raise OSError(5, "Input/output error")

how = sys.argv.pop(1)
if how == "killed":
    Positions.save = killed
else:
    Spool.sync = refused
main()
"""


@pytest.mark.parametrize(("how", "code"), [("killed", -signal.SIGKILL), ("refused", 3)])
def test_the_logs_position_moves_only_once_its_rows_are_on_disk(kafka, tmp_path, how, code):
    topic = f"streams.{how}"
    kafka.create_topic(topic)
    log(tmp_path / "tidegate.log", range(300))
    argv = [
        sys.executable,
        "-c",
        CHILD,
        how,
        "accesslog",
        tmp_path / "tidegate.log",
        "--state-dir",
        tmp_path / "state",
    ]
    argv += [*OURS, "--kafka", NOBODY, "--topic", topic, "--spool", tmp_path / "spool"]
    done = subprocess.run(
        [str(each) for each in argv], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == code, done.stderr
    assert list((tmp_path / "state").glob("*.json")) == []
    spool = Spool(tmp_path / "spool", 1 << 28)
    assert spool.pending == 300
    spool.close()
    code, told = ended(accesslog(tmp_path, kafka.bootstrap["plaintext"], "--topic", topic))
    assert (code, told["rows"], told["kafka_delivered"]) == (0, 300, 600)
    found = rows(kafka, topic, TRANSFERS)
    assert found["connection"].tolist() == [*range(300), *range(300)]
    assert found[:300].tobytes() == found[300:].tobytes()  # so that the two can be told from two transfers


def test_health_comes_with_metrics_that_tell_of_it(kafka, tmp_path):
    kafka.create_topic("streams.health")
    argv = [COLLECTOR, "health", "--json", *OURS, "--interval", "50ms", "--metrics", "127.0.0.1:0"]
    argv += ["--kafka", kafka.bootstrap["plaintext"], "--topic", "streams.health", "--spool", tmp_path]
    with subprocess.Popen([str(each) for each in argv], stderr=subprocess.PIPE, text=True) as running:
        address = address_of_metrics(running)

        def delivered():
            with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - our own
                shown = answer.read().decode()
            assert "\ntidegate_collector_kafka_failing 0.0\n" in shown
            return re.search(
                r"^tidegate_collector_kafka_delivered_total ([3-9]|\d{2,})\.0$", shown, re.MULTILINE
            )

        awaits(delivered)
        running.terminate()
        code, told = ended(running)
    assert code == 0
    found = rows(kafka, "streams.health", HOSTS)
    assert len(found) == told["rows"] == told["kafka_delivered"] >= 3
    assert (found["observed_us"] >= 50_000).all()
    assert (found["host"] == b"edge1.ams1.example").all()


def test_what_the_reader_of_a_log_could_not_read_is_a_metric(tmp_path):
    log(tmp_path / "tidegate.log", range(3))
    with (tmp_path / "tidegate.log").open("a") as file:
        file.write("no row\n")
    options = ("--follow", "--metrics", "127.0.0.1:0")
    with accesslog(tmp_path, NOBODY, *options) as running:
        address = address_of_metrics(running)

        def shown():
            with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - our own
                return answer.read().decode()

        awaits(lambda: "\ntidegate_collector_kafka_spooled 3.0\n" in shown())
        assert '\ntidegate_collector_trouble_total{kind="lines: no JSON"} 1.0\n' in shown()
        awaits(lambda: "\ntidegate_collector_kafka_failing 1.0\n" in shown())
        running.terminate()
        running.communicate(timeout=60)


def test_a_file_of_rows_takes_no_more_of_the_disk_than_it_may(tmp_path):
    out = tmp_path / "transfers.pb"
    log(tmp_path / "tidegate.log", range(30_000))
    argv = [COLLECTOR, "accesslog", tmp_path / "tidegate.log", "--state-dir", tmp_path, *OURS, "--out", out]
    done = subprocess.run([*argv, "--out-mib", "1"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    files = [out.with_name("transfers.pb.1"), out]
    kept = [row for each in files for row in TRANSFERS.read(each.read_bytes())["connection"].tolist()]
    assert kept == list(range(30_000 - len(kept), 30_000))  # the newest, in order
    assert len(kept) < 30_000
    batch = (1 << 20) // len(line(10_000)) * TRANSFERS.length  # of one read of the log
    assert all(each.stat().st_size <= (1 << 20) + batch for each in files)
    told = re.findall(r"transfers\.pb\.1: (\d+) bytes of rows removed", done.stderr)
    assert sum(map(int, told)) == (30_000 - len(kept)) * TRANSFERS.length


PROBE = """
import sys
from tidegate_edge.collector import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("confluent_kafka" in sys.modules, "prometheus_client" in sys.modules)
"""


@pytest.mark.parametrize(
    ("command", "kafka_is_loaded"),
    [
        (("once", *OURS), False),
        (("run", "--count", "1", *OURS), False),
        (("health", "--count", "1", "--interval", "10ms", *OURS), False),
        (("accesslog", "tidegate.log", "--state-dir", ".", *OURS), False),
        (
            ("health", "--count", "1", "--interval", "10ms", *OURS, "--kafka", NOBODY, "--spool", "spool"),
            True,
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_kafkas_client_is_loaded_only_by_who_sends_to_it(tmp_path, command, kafka_is_loaded):
    log(tmp_path / "tidegate.log", range(3))
    out = () if kafka_is_loaded else ("--out", "rows.pb")
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *command, *out],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60, env=os.environ,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{kafka_is_loaded} False\n"), done.stderr
