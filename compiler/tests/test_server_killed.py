"""A single ClickHouse server that is killed between a block's token and its rows: they are there once, in the end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer
from tidegate.errors import MISSING_PART, Failure
from tidegate.schemas.rows import new_rows
from tidegate.telemetry import kafka_ingest
from tidegate.telemetry.hollow_tokens import may_be_hollow
from tidegate.telemetry.hosts import HEALTH
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.telemetry.transfers import TRANSFER

SERVER = Path(__file__).with_name("clickhouse_over_http.py")
DAY_NS = 86_400 * 10**9
EACH, MESSAGES = 40, 6
TABLES = {"socket_samples": "cookie", "transfers": "connection", "host_health": "observed_at"}


class Server:
    """One that keeps its tables, on one port, over being killed."""

    def __init__(self, directory):
        self.directory, self.port = directory, 0
        self.start()

    def start(self):
        argv = [sys.executable, SERVER, self.directory, str(self.port)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    @property
    def dsn(self):
        return f"http://127.0.0.1:{self.port}"

    def take_back(self):
        """Leave of each table's newest part what a kill just before its rename leaves; returns how many parts."""
        taken = 0
        for log in self.directory.glob("store/*/*/deduplication_logs/*.txt"):
            parts = sorted(each for each in log.parents[1].glob("20*_*_*_0") if each.is_dir())
            if parts and log.stat().st_size:
                parts[-1].rename(parts[-1].with_name(f"tmp_insert_{parts[-1].name}"))
                taken += 1
        return taken


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "server")
    yield made
    made.kill()


def rows_of_every_kind(count, first=0):
    """By kind; every other one is of the day before."""
    made = {
        "sockets": new_rows(count),
        "health": HEALTH.form.new(count),
        "transfers": TRANSFER.form.new(count),
    }
    numbers = first + np.arange(count, dtype=np.uint64)
    observed_ns = time.time_ns() + numbers - numbers % 2 * np.uint64(DAY_NS)
    for rows in made.values():
        rows["pop"], rows["host"] = b"fra2", b"fra2-edge1"
    made["sockets"]["observed_at_ns"] = made["health"]["observed_at_ns"] = observed_ns
    made["transfers"]["finished_at_ns"] = observed_ns
    made["sockets"]["cookie"] = made["transfers"]["connection"] = numbers
    made["transfers"]["status"], made["health"]["observed_us"] = 200, 1
    return made


@pytest.fixture
def topic(kafka, request):
    """Of rows of every kind."""
    made = Topic(kafka.bootstrap["plaintext"], f"server.{request.node.name}")
    kafka.create_topic(made.name)
    producer = Producer(kafka.settings())
    for number in range(MESSAGES):
        for rows in rows_of_every_kind(EACH, number * EACH).values():
            producer.produce(made.name, rows.tobytes())
    assert producer.flush(30) == 0
    return made


def load(client, topic):
    with open_topic(topic, {}) as reader:
        return ingest_topic(client, reader, follow=False)


def stored(client):
    """Of each table its rows, and how many of them are different."""
    counted = (f"SELECT count(), uniqExact({by}) FROM {table}" for table, by in TABLES.items())  # noqa: S608 - ours
    return [client.query(each).result_rows[0] for each in counted]


def test_rows_whose_token_came_and_whose_part_did_not_are_inserted_again_and_once(server, topic, monkeypatch):
    every = MESSAGES * EACH

    def server_is_killed(*_):
        server.kill()
        raise ConnectionError

    with open_store(server.dsn) as client:
        migrate(client)
        assert all(may_be_hollow(client, table) for table in TABLES)
        with monkeypatch.context() as patched:
            patched.setattr(
                kafka_ingest, "write_spools", server_is_killed
            )  # the rows are in, the claim is open
            with pytest.raises(ConnectionError):
                load(client, topic)
    assert server.take_back() == len(TABLES)
    server.start()
    with open_store(server.dsn) as client:
        assert stored(client) == [(every // 2, every // 2)] * len(TABLES)
        with monkeypatch.context() as patched:
            patched.setattr(kafka_ingest, "may_be_hollow", lambda *_: False)
            patched.setattr(kafka_ingest, "finish", lambda *_: None)
            load(client, topic)  # the tokens alone lose what they stand for
            assert stored(client) == [(every // 2, every // 2)] * len(TABLES)
            client.command("TRUNCATE TABLE kafka_spools")
        report = load(client, topic)
        assert (report.rows, report.repeated) == (3 * every, 3 * every)
        assert stored(client) == [(every, every)] * len(TABLES)
        # Whoever repeats it finds the rows, under whichever of the tokens they came.
        client.command("TRUNCATE TABLE kafka_ranges")
        client.command("TRUNCATE TABLE kafka_spools")
        load(client, topic)
        assert stored(client) == [(every, every)] * len(TABLES)


def test_a_server_that_drops_rows_for_ever_is_told(server, topic, monkeypatch):
    with open_store(server.dsn) as client:
        migrate(client)
        monkeypatch.setattr(kafka_ingest, "insert_days", lambda *_: None)
        with pytest.raises(Failure, match="does not find them") as caught:
            load(client, topic)
        assert caught.value.exit_code == MISSING_PART
        monkeypatch.undo()
        load(client, topic)
        assert stored(client) == [(MESSAGES * EACH, MESSAGES * EACH)] * len(TABLES)


def test_an_embedded_store_is_not_asked(tmp_path):
    with open_store(f"chdb://{tmp_path / 'store'}") as client:
        migrate(client)
        assert not any(may_be_hollow(client, table) for table in TABLES)


def test_a_files_rows_whose_token_came_and_whose_part_did_not_are_there_when_it_is_loaded_again(
    server, tmp_path
):
    every = MESSAGES * EACH
    paths = []
    for kind, rows in rows_of_every_kind(every).items():
        paths.append(tmp_path / f"{kind}.pb")
        paths[-1].write_bytes(rows.tobytes())
    with open_store(server.dsn) as client:
        migrate(client)
        for path in paths:
            ingest_file(client, path)
        client.command("TRUNCATE TABLE ingested_blocks")  # the server went before the ledger was written
    server.kill()
    assert server.take_back() == len(TABLES)
    server.start()
    with open_store(server.dsn) as client:
        assert stored(client) == [(every // 2, every // 2)] * len(TABLES)
        for path in paths:
            ingest_file(client, path)
        assert stored(client) == [(every, every)] * len(TABLES)
