"""What a host sends again is taken once, exactly, and whatever headers say no row is lost by them."""

import time

import numpy as np
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from hypothesis import given
from hypothesis import strategies as st
from tidegate.schemas.rows import new_rows
from tidegate.telemetry import kafka_consumer, kafka_ingest
from tidegate.telemetry.kafka_address import Topic
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.kafka_spool_ledger import read_spools
from tidegate.telemetry.kafka_spools import MAX_RUNS, MAX_SPOOLS, Spool, Spools, origin_of, take
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

NOW_NS = time.time_ns()
NAME = "0123456789abcdef" * 2

# --- what has come ------------------------------------------------------------------------------------------

RUNS = st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda drawn: (drawn[0], drawn[0] + drawn[1]))


@given(st.lists(RUNS, max_size=40))
def test_of_every_number_the_first_message_that_has_it_is_taken(messages):
    spool, come = Spool(newest_ns=1), set()
    for rows in messages:
        taken = take(spool, rows, newest_ns=1)
        fresh = [row for first, end in taken.fresh for row in range(first, end)]
        assert fresh == [row for row in range(*rows) if row not in come]
        come |= set(range(*rows))
        spool = taken.spool
        assert {row for run in spool.runs for row in range(*run)} == come
        assert all(before[1] < after[0] for before, after in zip(spool.runs, spool.runs[1:], strict=False))
        assert not taken.gone_back


@given(st.permutations(range(12)), st.integers(0, 11))
def test_order_does_not_matter_nor_what_is_repeated(order, repeated):
    spool = Spool(newest_ns=1)
    for number in [*order, repeated]:
        taken = take(spool, (10 * number, 10 * number + 10), newest_ns=1)
        spool = taken.spool
    assert (taken.fresh, spool.runs) == ((), ((0, 120),))


def test_numbers_that_went_back_hide_no_newer_row():
    spool = take(Spool(), (0, 100), newest_ns=5).spool
    assert take(spool, (40, 60), newest_ns=5).fresh == ()
    again = take(spool, (40, 60), newest_ns=6)
    assert (again.fresh, again.gone_back) == (((40, 60),), True)
    assert again.spool == Spool(((0, 60),), 6)
    assert take(again.spool, (40, 60), newest_ns=6).fresh == ()
    assert take(again.spool, (60, 80), newest_ns=7).fresh == ((60, 80),)


def test_memory_of_a_spool_and_of_all_is_bounded():
    spool = Spool()
    for number in range(3 * MAX_RUNS):
        spool = take(spool, (2 * number, 2 * number + 1), newest_ns=number).spool
    assert len(spool.runs) == MAX_RUNS
    assert spool.runs[-1] == (6 * MAX_RUNS - 2, 6 * MAX_RUNS - 1)
    spools = Spools((str(number), spool) for number in range(MAX_SPOOLS))
    spools["0"] = spool
    spools["one more"] = spool
    assert (spools["1"], spools["0"], spools["one more"]) == (Spool(), spool, spool)


def said(row=7, rows=3, spool=NAME):
    return {"spool": spool.encode(), "row": str(row).encode(), "rows": str(rows).encode()}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"pop": b"ams1"},
        {**said(), "spool": None},
        said(spool=NAME[:-1]),
        said(spool=NAME[:-1] + "G"),
        said(spool=NAME + "\n"),
        said(row=-1),
        said(row="0x7"),
        said(row="7\n"),
        {**said(), "row": "\u0663".encode()},
        said(row=2**64 - 3),
        said(row="9" * 21),
        said(rows=4),
        said(rows=2),
    ],
)
def test_headers_that_make_no_sense_say_nothing(headers):
    assert origin_of(headers, 3) is None


def test_headers_that_do_say_which_rows():
    origin = origin_of({**said(), "pop": b"ams1"}, 3)
    assert (origin.spool, origin.rows) == (NAME, (7, 10))
    assert origin_of(said(rows=0), 0) is None


# --- in a store -----------------------------------------------------------------------------------------------


@pytest.fixture
def topic(kafka, request):
    made = Topic(kafka.bootstrap["plaintext"], "spools." + request.node.originalname)
    kafka.create_topic(made.name, partitions=3)
    return made


@pytest.fixture(scope="module")
def shared():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


@pytest.fixture
def client(shared):
    shared.command("TRUNCATE TABLE socket_samples")
    return shared


def rows_of(first, count, observed_ns=NOW_NS):
    rows = new_rows(count)
    rows["pop"], rows["host"], rows["observed_at_ns"] = b"fra2", b"fra2-edge1", observed_ns
    rows["cookie"] = np.arange(first, first + count)
    return rows.tobytes()


def produce(broker, topic, *messages):
    """Messages as (rows, headers) or (rows, headers, partition)."""
    producer = Producer(broker.settings())
    for value, headers, *partition in messages:
        producer.produce(topic.name, value, headers=headers, partition=partition[0] if partition else 0)
    assert producer.flush(30) == 0


def await_partitions(broker, topic, count):
    deadline = time.monotonic() + 60
    while True:
        try:
            if len(broker.end_offsets(topic.name)) == count:
                return
        except KafkaException:  # a new one has no leader yet
            pass
        assert time.monotonic() < deadline


def load(client, topic):
    with open_topic(topic, {}) as reader:
        return ingest_topic(client, reader, follow=False)


def stored(client):
    return client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]


def test_a_repetition_in_one_block_in_a_later_one_and_in_another_partition(kafka, client, topic):
    produce(kafka, topic, *[(rows_of(n, 10), said(n, 10)) for n in (0, 10, 10, 20)])
    first = load(client, topic)
    assert (first.rows, first.sent_again, first.unnumbered) == (30, 10, 0)
    again = [(rows_of(n, 10), said(n, 10), n // 10 % 3) for n in (0, 10, 20, 30)]
    produce(kafka, topic, *again, (rows_of(35, 10), said(35, 10), 0))
    # Which of the two messages that hold 35 to 39 comes first is not said; each of their rows is taken once.
    second = load(client, topic)
    assert (second.messages, second.rows, second.sent_again) == (5, 15, 35)
    assert stored(client) == (45, 45)


def test_a_host_that_moves_when_the_topic_gets_partitions_is_known(kafka, client, topic):
    produce(kafka, topic, *[(rows_of(n, 10), said(n, 10), 2) for n in range(0, 80, 10)])
    load(client, topic)
    admin = AdminClient(kafka.settings())
    admin.create_partitions([NewPartitions(topic.name, 6)])[topic.name].result()
    await_partitions(kafka, topic, 6)
    produce(kafka, topic, *[(rows_of(n, 10), said(n, 10), 5) for n in range(40, 120, 10)])
    report = load(client, topic)
    assert (report.rows, report.sent_again) == (40, 40)
    assert stored(client) == (120, 120)


def test_partitions_that_a_topic_gets_while_it_is_followed_are_read_from_their_beginning(
    kafka, client, topic, monkeypatch
):
    monkeypatch.setattr(kafka_consumer, "LOOK_EVERY_S", 0.1)
    produce(kafka, topic, (rows_of(0, 10), said(0, 10), 0))
    admin = AdminClient(kafka.settings())
    deadline, seen = time.monotonic() + 60, []

    def more(report):
        seen.append(report.rows)
        if len(seen) == 1:
            admin.create_partitions([NewPartitions(topic.name, 5)])[topic.name].result()
            await_partitions(kafka, topic, 5)
            produce(kafka, topic, (rows_of(10, 10), said(10, 10), 4), (rows_of(20, 10), said(20, 10), 0))

    with open_topic(topic, {}) as reader:
        stopped = lambda: seen[-1:] == [30] or time.monotonic() > deadline  # noqa: E731 - of one line
        report = ingest_topic(client, reader, follow=True, block_s=0.1, stopped=stopped, on_progress=more)
    assert (report.rows, report.sent_again) == (30, 0)
    assert load(client, topic).messages == 0
    assert stored(client) == (30, 30)


def test_what_is_not_numbered_or_numbered_anew_is_taken_and_counted(kafka, client, topic):
    produce(
        kafka, topic, (rows_of(0, 10), said(0, 10)), (rows_of(10, 10), None), (rows_of(20, 10), said(10, 9))
    )
    report = load(client, topic)
    assert (report.rows, report.unnumbered, report.gone_back) == (30, 2, 0)
    produce(
        kafka, topic, (rows_of(30, 10, NOW_NS + 1), said(0, 10)), (rows_of(40, 10, NOW_NS + 1), said(10, 10))
    )
    report = load(client, topic)
    assert (report.rows, report.sent_again, report.gone_back) == (20, 0, 1)
    assert stored(client) == (50, 50)


def test_of_a_damaged_message_nothing_has_come(kafka, client, topic):
    produce(kafka, topic, (rows_of(0, 10)[:-1], said(0, 10)), (rows_of(0, 10), said(0, 10)))
    report = load(client, topic)
    assert (report.rows, report.sent_again, sum(report.left_out.values())) == (10, 0, 1)
    assert stored(client) == (10, 10)


def test_a_topic_has_its_own_spools_and_a_silent_one_is_forgotten_by_the_table(client):
    assert read_spools(client, "nobody's")[NAME] == Spool()
    engine = client.command(
        "SELECT engine_full FROM system.tables WHERE database = 'tidegate' AND name = 'kafka_spools'"
    )
    oldest_days = kafka_ingest.OLDEST_NS // (86_400 * 10**9)
    days = int(engine.partition("TTL seen + toIntervalDay(")[2].partition(")")[0])
    # A row may be a day ahead of the ingesting clock, and the bound is rounded down to a day.
    assert days > oldest_days + 2
