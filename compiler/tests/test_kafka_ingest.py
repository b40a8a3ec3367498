"""A Kafka topic in the store: every row once, whatever damages a message or kills the process."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.schemas.rows import new_rows
from tidegate.telemetry.kafka_address import Topic, parse_topic, read_settings
from tidegate.telemetry.kafka_batch import DAMAGED
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

NOW_NS = time.time_ns()
DAY_NS = 86_400 * 10**9
EACH = 50  # rows a message


def message(number):
    rows = new_rows(EACH)
    rows["pop"], rows["host"], rows["observed_at_ns"] = b"fra2", b"fra2-edge1", NOW_NS
    rows["cookie"] = np.arange(EACH) + number * EACH
    return rows.tobytes()


def produce(broker, topic, values):
    producer = Producer(broker.settings())
    for number, value in enumerate(values):
        producer.produce(topic, value, key=f"host{number % 7}")
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


@pytest.fixture
def topic(kafka, request):
    name = "ingest." + request.node.name.replace("[", ".").replace("]", "")
    kafka.create_topic(name, partitions=3)
    return Topic(kafka.bootstrap["plaintext"], name)


@pytest.fixture
def load(client, topic):
    client.command("TRUNCATE TABLE socket_samples")

    def run(**options):
        with open_topic(topic, {}) as reader:
            return ingest_topic(client, reader, follow=False, **options)

    return run


def stored(client):
    return client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]


def test_every_row_arrives_once(kafka, client, topic, load):
    produce(kafka, topic.name, map(message, range(40)))
    report = load()
    assert (report.messages, report.rows, report.repeated, report.lost) == (40, 40 * EACH, 0, 0)
    assert (load().rows, stored(client)) == (0, (40 * EACH, 40 * EACH))
    produce(kafka, topic.name, map(message, range(40, 45)))
    assert (load().rows, stored(client)) == (5 * EACH, (45 * EACH, 45 * EACH))


def test_a_damaged_message_is_counted_and_passed(kafka, client, topic, load):
    flipped = bytearray(message(3))
    flipped[len(flipped) // EACH * 7] ^= 1  # the frame of its eighth row
    damaged = [b"", b"not a row", message(2)[:-1], bytes(flipped)]
    produce(kafka, topic.name, [message(0), *damaged, message(1)])
    report = load()
    # An empty message is whole rows, none of them.
    assert (report.messages, report.rows, report.left_out) == (6, 2 * EACH, {DAMAGED: 3})
    assert (load().messages, stored(client)) == (0, (2 * EACH, 2 * EACH))


def test_a_topic_of_nothing_but_damage_is_passed(kafka, client, topic, load):
    produce(kafka, topic.name, [b"", b"not a row", message(2)[:-1]])
    report = load()
    assert (report.messages, report.rows, report.left_out) == (3, 0, {DAMAGED: 2})
    assert (load().messages, stored(client)) == (0, (0, 0))


def test_a_topic_whose_last_offset_is_no_message_is_read_to_its_end(kafka, client, topic, load):
    """A transaction ends with a marker, which takes an offset in each of its partitions and is never delivered."""
    settings = kafka.settings() | {"transactional.id": topic.name}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(7):
        producer.produce(topic.name, message(number), key=f"host{number}")
    producer.commit_transaction(30)
    Producer(settings).init_transactions(30)  # until the markers are written; a commit does not wait for them
    report = load()
    assert (report.messages, report.rows, report.lost) == (7, 7 * EACH, 0)
    assert (load().messages, stored(client)) == (0, (7 * EACH, 7 * EACH))


def test_a_row_of_another_year_cannot_block_the_topic(kafka, client, topic, load):
    rows = np.frombuffer(bytearray(message(0) * 4), new_rows(0).dtype)
    rows["observed_at_ns"] = NOW_NS - np.arange(len(rows), dtype=np.uint64) * DAY_NS
    produce(kafka, topic.name, [rows.tobytes(), message(1)])
    report = load()
    past_midnight = time.time_ns() // DAY_NS - NOW_NS // DAY_NS
    kept = len(rows) - report.left_out["older than the stream may be"]
    assert kept in {31, 31 - past_midnight}
    assert stored(client)[0] == kept + EACH


def test_what_kafka_deleted_unread_is_counted(kafka, client, topic, load):
    def to_one_partition(numbers):
        producer = Producer(kafka.settings())
        for number in numbers:
            producer.produce(topic.name, message(number), partition=1)
        assert producer.flush(30) == 0

    to_one_partition(range(3))
    load()
    to_one_partition(range(3, 10))
    admin = AdminClient(kafka.settings())
    deleted = admin.delete_records([TopicPartition(topic.name, 1, 7)])
    [future.result() for future in deleted.values()]
    report = load()
    assert (report.lost, report.rows) == (4, 3 * EACH)
    assert stored(client) == (6 * EACH, 6 * EACH)


def test_a_topic_made_anew_under_its_name_begins_anew(kafka, client, topic, load):
    produce(kafka, topic.name, map(message, range(6)))
    load()
    admin = AdminClient(kafka.settings())
    admin.delete_topics([topic.name])[topic.name].result()
    deadline = time.monotonic() + 30
    while True:
        try:
            kafka.create_topic(topic.name, partitions=3)
            break
        except KafkaException:  # the old one is not gone yet
            assert time.monotonic() < deadline
    produce(kafka, topic.name, [message(100)])
    assert (load().rows, stored(client)) == (EACH, (7 * EACH, 7 * EACH))


def test_two_that_read_one_topic_are_told_apart(kafka, client, topic):
    produce(kafka, topic.name, map(message, range(30)))
    client.command("TRUNCATE TABLE socket_samples")
    with open_topic(topic, {}) as first, open_topic(topic, {}) as second:

        def other_one_starts(_):
            if not second.was_used:
                second.was_used = True
                produce(kafka, topic.name, map(message, range(30, 40)))
                ingest_topic(client, second, follow=False)
                produce(kafka, topic.name, map(message, range(40, 50)))

        second.was_used = False
        with pytest.raises(Failure, match="another `tidegate ingest` reads topic") as caught:
            ingest_topic(client, first, follow=True, block_s=0.5, on_progress=other_one_starts)
    assert caught.value.exit_code == MISSING_PART
    count, distinct = stored(client)
    assert count == distinct


# --- killed -----------------------------------------------------------------------------------------------

# Ingests; with a fate, dies by SIGKILL so many microseconds into the fate's step.
CHILD = """
import os, random, signal, sys, threading, time
from tidegate.telemetry import kafka_ingest
from tidegate.telemetry.kafka_address import parse_topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

dsn, address, step, share = sys.argv[1:]
kafka_ingest.BLOCK_BYTES = 20 * 50 * 506
die = lambda: os.kill(os.getpid(), signal.SIGKILL)

def deadly(call):
    calls = []
    def wrapped(*arguments, **named):
        begin = time.perf_counter()
        if len(calls) == 1:  # by then the first call has shown how long one takes
            threading.Timer(float(share) * calls[0], die).start()
        result = call(*arguments, **named)
        calls.append(time.perf_counter() - begin)
        if len(calls) == 2:
            die() if float(share) < 1 else time.sleep(60)
        return result
    return wrapped

if step != "none":
    setattr(kafka_ingest, step, deadly(getattr(kafka_ingest, step)))
with open_store(dsn) as client:
    migrate(client)
    with open_topic(parse_topic(address), {}) as reader:
        report = kafka_ingest.ingest_topic(client, reader, follow=False)
    stored = client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]
    print(report.rows, report.repeated, *stored)
"""


def test_killed_ten_times_between_insert_and_commit_no_row_is_lost_or_doubled(kafka, topic, tmp_path):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    address = f"kafka://{topic.brokers}/{topic.name}"

    def run(step, share):
        command = [sys.executable, "-c", CHILD, f"chdb://{tmp_path / 'store'}", address, step, str(share)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ, timeout=90
        )

    made = 0
    for turn in range(10):
        produce(kafka, topic.name, map(message, range(made, made + 90)))
        made += 90
        step = ("insert_days", "insert_days", "finish", "claim")[turn % 4]
        killed = run(step, chance.uniform(0, 1.2))
        assert killed.returncode == -signal.SIGKILL, (seed, turn, killed.stderr)
    finished = run("none", 0)
    assert finished.returncode == 0, (seed, finished.stderr)
    _, _, count, distinct = map(int, finished.stdout.split())
    assert (count, distinct) == (made * EACH, made * EACH), seed


def test_followed_it_warns_of_what_is_left_out_and_sigterm_ends_it_after_the_running_block(
    kafka, topic, tmp_path
):
    produce(kafka, topic.name, [*map(message, range(20)), b"cut"])
    command = [
        sys.executable, "-c", "from tidegate.cli import main; main()", "--dsn", f"chdb://{tmp_path / 'store'}",
        "ingest", "--json", "--follow", f"kafka://{topic.brokers}/{topic.name}",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not _claimed(tmp_path / "store") and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (json.loads(out)["rows"], json.loads(out)["left_out"]) == (20 * EACH, {DAMAGED: 1})
    assert f"warning: {topic.name}: 1 left out: {DAMAGED}\n" in err


def _claimed(store):
    """Whether parts of socket_samples stand in the store's directory."""
    return any(
        (table / "format_version.txt").exists() and any(table.glob("20*_*_*_*"))
        for table in store.glob("store/*/*")
    )


# --- addresses and settings ---------------------------------------------------------------------------------


def test_an_address_names_brokers_and_topic():
    assert parse_topic("kafka://a.example:9092,[2001:db8::1]:9093/t.x") == Topic(
        "a.example:9092,[2001:db8::1]:9093", "t.x"
    )


@pytest.mark.parametrize(
    "address",
    ["kafka://", "kafka://a:1", "kafka://a:1/", "kafka://a:1/..", "kafka://user:pw@a:1/t", "kafka://a/t"],
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(Failure) as caught:
        parse_topic(address)
    assert caught.value.exit_code == BAD_INPUT
    assert "pw" not in caught.value.message


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "kafka.conf"
    path.write_text("# TLS\nsecurity.protocol = sasl_ssl\nsasl.password=s3cret=\n")
    path.chmod(0o640)
    with pytest.raises(Failure, match="others can read it"):
        read_settings(path)
    path.chmod(0o600)
    assert read_settings(path) == {"security.protocol": "sasl_ssl", "sasl.password": "s3cret="}


def test_tls_and_sasl(kafka, topic, client):
    produce(kafka, topic.name, [message(0)])
    settings = {key: str(value) for key, value in kafka.settings("sasl_ssl").items()}
    settings.pop("bootstrap.servers")
    client.command("TRUNCATE TABLE socket_samples")
    with open_topic(Topic(kafka.bootstrap["sasl_ssl"], topic.name), settings) as reader:
        assert ingest_topic(client, reader, follow=False).rows == EACH


def test_a_wrong_setting_and_a_missing_topic_are_told(kafka):
    brokers = kafka.bootstrap["plaintext"]
    with pytest.raises(Failure) as caught, open_topic(Topic(brokers, "t"), {"no.such": "1"}):
        pass
    assert (caught.value.exit_code, "no.such" in caught.value.message) == (BAD_INPUT, True)
    with pytest.raises(Failure) as caught, open_topic(Topic(brokers, "ingest.missing"), {}):
        pass
    assert caught.value.exit_code == MISSING_PART
