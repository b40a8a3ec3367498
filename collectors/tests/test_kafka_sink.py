"""Rows reach a real broker, whatever happens to it, to the collector and to the disk: lost are only the counted.

Every row has a cookie of its own, so that what arrived is compared with what was written, row by row.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from tidegate_edge.errors import Failure
from tidegate_edge.schemas.rows import new_rows, read_rows
from tidegate_edge.ship.kafka import MESSAGE_BYTES, KafkaSink
from tidegate_edge.ship.kafka_config import read_kafka_config
from tidegate_edge.ship.kafka_shipper import WINDOW, Destination
from tidegate_edge.ship.spool import Spool

NOBODY = "127.0.0.1:9"  # discard (RFC 863): nothing listens there


@pytest.fixture(scope="module")
def fragile(new_broker):
    """A broker of this module's own; every test leaves it running."""
    return new_broker()


def numbered(first, count):
    rows = new_rows(count)
    rows["cookie"] = np.arange(first, first + count)
    return rows


def open_sink(broker, topic, directory, *, options=None, max_bytes=1 << 28, drain_seconds=5.0, told=None):
    """A sink; `broker` is its address or itself."""
    brokers = broker if isinstance(broker, str) else broker.bootstrap["plaintext"]
    spool = Spool(directory, max_bytes)
    tell = (lambda _line: None) if told is None else told.append
    to = Destination(topic, "edge1", "ams1")
    return KafkaSink(brokers, to, options or {}, spool, tell=tell, drain_seconds=drain_seconds)


def awaits(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def messages(broker, topic):
    """All that the topic holds."""
    consumer = Consumer({**broker.settings(), "group.id": "test", "enable.partition.eof": "false"})
    found = []
    for partition, end in broker.end_offsets(topic).items():
        consumer.assign([TopicPartition(topic, partition, 0)])
        while not found or len(found) < end:
            if end == 0:
                break
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            found.append(message)
    consumer.close()
    return found


def cookies(broker, topic):
    batches = [read_rows(each.value())["cookie"] for each in messages(broker, topic)]
    return np.concatenate(batches) if batches else np.empty(0, np.uint64)


def test_messages_are_whole_rows_of_one_poll_as_few_as_hold_them_and_say_whose_they_are(kafka, tmp_path):
    kafka.create_topic("sink.form")
    sink = open_sink(kafka, "sink.form", tmp_path)
    sink.write([numbered(0, 4000), numbered(4000, 3)])
    sink.close()
    assert sink.shipped.delivered == 4003
    found = messages(kafka, "sink.form")
    assert all(len(each.value()) <= MESSAGE_BYTES for each in found)
    assert [int(dict(each.headers())["rows"]) for each in found] == [
        len(read_rows(each.value())) for each in found
    ]
    assert [int(dict(each.headers())["row"]) for each in found] == [0, 1778, 3556]
    for each in found:
        headers = dict(each.headers())
        assert (each.key(), headers["pop"], headers["schema_version"]) == (b"edge1", b"ams1", b"2")
    assert cookies(kafka, "sink.form").tolist() == list(range(4003))


def test_a_broker_that_was_stopped_gets_everything_in_order_when_it_is_back(fragile, tmp_path):
    fragile.create_topic("sink.stopped")
    told = []
    sink = open_sink(fragile, "sink.stopped", tmp_path, told=told)
    sink.write([numbered(0, 500)])
    awaits(lambda: sink.shipped.delivered == 500)
    fragile.stop()
    for first in range(500, 20_500, 2000):
        sink.write([numbered(first, 2000)])
    awaits(lambda: sink.shipped.error)
    assert sink.shipped.spooled == 20_000
    fragile.start()
    awaits(lambda: sink.shipped.delivered == 20_500)
    sink.close()
    assert sink.shipped.dropped == 0
    assert cookies(fragile, "sink.stopped").tolist() == list(range(20_500))
    assert "stay in the spool" in told[0]
    assert "again" in told[-1]


def test_a_broker_killed_while_it_is_written_to_loses_and_doubles_nothing(fragile, tmp_path):
    fragile.create_topic("sink.killed")
    sink = open_sink(fragile, "sink.killed", tmp_path)
    written = 0
    for _ in range(2):
        until = sink.shipped.delivered + 10_000
        while sink.shipped.delivered < until:
            sink.write([numbered(written, 2000)])
            written += 2000
            awaits(lambda: sink.shipped.spooled < 20_000)
        fragile.kill()
        sink.write([numbered(written, 2000)])
        written += 2000
        fragile.start()
    awaits(lambda: sink.shipped.delivered == written)
    sink.close()
    assert sink.shipped.dropped == 0
    assert cookies(fragile, "sink.killed").tolist() == list(range(written))


def test_a_broker_that_hangs_holds_up_no_poll_and_gets_everything_later(fragile, tmp_path):
    fragile.create_topic("sink.hung")
    sink = open_sink(fragile, "sink.hung", tmp_path)
    sink.write([numbered(0, 500)])
    awaits(lambda: sink.shipped.delivered == 500)
    fragile.pause()
    begin = time.monotonic()
    for first in range(500, 40_500, 2000):
        sink.write([numbered(first, 2000)])
    assert time.monotonic() - begin < 30  # a request waits for a minute (socket.timeout.ms)
    assert sink.shipped.spooled == 40_000
    fragile.resume()
    awaits(lambda: sink.shipped.delivered == 40_500)
    sink.close()
    assert cookies(fragile, "sink.hung").tolist() == list(range(40_500))


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_kafka_sink import numbered, open_sink
from pathlib import Path
_, _, brokers, topic, directory, first = sys.argv
sink = open_sink(brokers, topic, Path(directory))
for at in range(int(first), int(first) + 1_000_000, 700):
    sink.write([numbered(at, 700)])
    print(at + 700, flush=True)
"""


def test_a_collector_killed_between_poll_and_send_loses_nothing(kafka, tmp_path):
    kafka.create_topic("sink.collector")
    first, kills, complete = 0, 5, []
    for turn in range(kills):
        brokers = NOBODY if turn == 2 else kafka.bootstrap["plaintext"]
        argv = ["-c", WRITER, Path(__file__).parent, brokers, "sink.collector", tmp_path, str(first)]
        with subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(1 + 7 * turn):
                said = writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            said = ([said, *writer.stdout.read().split()])[-1]
        complete.append(range(first, int(said)))
        # What follows may be there too, though its writer did not get to say so: leave its numbers out.
        first = int(said) + 700
    sink = open_sink(kafka, "sink.collector", tmp_path)
    awaits(lambda: not sink.shipped.spooled)
    sink.close()
    found = cookies(kafka, "sink.collector")
    arrived = set(found.tolist())
    assert [number for each in complete for number in each if number not in arrived] == []
    assert arrived <= set(range(first))
    assert sink.shipped.delivered == len(arrived)
    assert sink.shipped.spooled == 0
    # A kill may come while a message is being spooled: that one was not said to be written, and is counted.
    assert sink.shipped.dropped in range(0, 700 * kills + 1, 700)
    doubled = len(found) - len(np.unique(found))
    assert doubled <= kills * WINDOW * 700


def test_rows_beyond_the_bound_are_dropped_oldest_first_and_counted(kafka, tmp_path):
    kafka.create_topic("sink.bound")
    sink = open_sink(NOBODY, "sink.bound", tmp_path, max_bytes=16 << 20, drain_seconds=0)
    for first in range(0, 60_000, 1500):
        sink.write([numbered(first, 1500)])
    sink.close()
    told = []
    sink = open_sink(kafka, "sink.bound", tmp_path, max_bytes=16 << 20, told=told)
    awaits(lambda: not sink.shipped.spooled)
    sink.close()
    arrived = cookies(kafka, "sink.bound").tolist()
    assert sink.shipped.dropped == 60_000 - len(arrived) > 0
    assert arrived == sorted(arrived)
    newest = arrived[-20_000:]
    assert newest == list(range(40_000, 60_000))


@pytest.mark.root
def test_a_disk_that_is_full_costs_what_is_counted_and_no_more(kafka, tmp_path):
    kafka.create_topic("sink.full")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", tmp_path], check=True)
    try:
        sink = open_sink(NOBODY, "sink.full", tmp_path / "spool", drain_seconds=0)
        for first in range(0, 40_000, 1000):
            sink.write([numbered(first, 1000)])
        sink.close()
        assert sink.shipped.dropped > 0
        sink = open_sink(kafka, "sink.full", tmp_path / "spool")
        awaits(lambda: not sink.shipped.spooled)
        for first in range(40_000, 60_000, 1000):
            sink.write([numbered(first, 1000)])
            awaits(lambda: not sink.shipped.spooled)
        sink.close()
        arrived = cookies(kafka, "sink.full")
        assert len(np.unique(arrived)) == len(arrived) == 60_000 - sink.shipped.dropped
        assert arrived[-1] == 59_999
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("listener", ["ssl", "sasl_ssl"])
def test_tls_and_scram_by_a_file(kafka, tmp_path, listener):
    topic = f"sink.{listener}"
    kafka.create_topic(topic)
    given = kafka.settings(listener)
    brokers = given.pop("bootstrap.servers")
    file = tmp_path / "kafka.conf"
    file.touch(mode=0o600)
    file.write_text("# of the laboratory\n\n" + "".join(f"{key} = {value}\n" for key, value in given.items()))
    sink = open_sink(brokers, topic, tmp_path / "spool", options=read_kafka_config(file))
    sink.write([numbered(0, 10)])
    awaits(lambda: sink.shipped.delivered == 10)
    sink.close()
    assert cookies(kafka, topic).tolist() == list(range(10))


def test_a_wrong_password_keeps_the_rows_until_it_is_right(kafka, tmp_path):
    kafka.create_topic("sink.password")
    given = kafka.settings("sasl_ssl")
    brokers = given.pop("bootstrap.servers")
    wrong = {**given, "sasl.password": "not this one"}
    sink = open_sink(brokers, "sink.password", tmp_path, options=wrong, drain_seconds=0)
    sink.write([numbered(0, 10)])
    awaits(lambda: "uthentication" in (sink.shipped.error or ""))
    sink.close()
    assert sink.shipped.spooled == 10
    assert "not this one" not in sink.shipped.error
    sink = open_sink(brokers, "sink.password", tmp_path, options=given)
    awaits(lambda: sink.shipped.delivered == 10)
    sink.close()
    assert cookies(kafka, "sink.password").tolist() == list(range(10))


def test_a_topic_that_appears_late_gets_what_was_refused(kafka, tmp_path):
    told = []
    options = {"topic.metadata.propagation.max.ms": "100"}
    sink = open_sink(kafka, "sink.late", tmp_path, options=options, told=told)
    sink.write([numbered(0, 4000)])
    awaits(lambda: told)
    assert sink.shipped.spooled == 4000
    kafka.create_topic("sink.late")
    awaits(lambda: sink.shipped.delivered == 4000)
    sink.close()
    assert cookies(kafka, "sink.late").tolist() == list(range(4000))


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("sasl.password=secret\n", 0o644, "others than its owner"),
        ("sasl.password=secret\n", 0o620, "others than its owner"),
        ("compression.type=lz4\nacks=1\n", 0o600, r":2: `acks` is not for this file"),
        ("plugin.library.paths=/x.so\n", 0o600, "is not for this file"),
        ("compression.type\n", 0o600, ":1: not an option"),
        ("linger.ms=1\nlinger.ms=2\n", 0o600, "twice"),
    ],
)
def test_a_file_that_is_unsafe_or_no_configuration_is_refused(tmp_path, text, mode, message):
    file = tmp_path / "kafka.conf"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(Failure, match=message) as refused:
        read_kafka_config(file)
    assert "secret" not in refused.value.message


def test_an_option_that_librdkafka_does_not_know_is_named(tmp_path):
    with pytest.raises(Failure, match=r"no\.such"):
        open_sink(NOBODY, "sink.none", tmp_path, options={"no.such": "1"})
