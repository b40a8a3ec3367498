"""What a server makes of a topic by itself is what `tidegate ingest` makes of it, row by row and field by field.

The embedded engine makes the very tables and views, the Kafka engine's too, whose names and settings it checks; only
its reading does not start. So messages are put where the engine would put them: into the table behind it.
"""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError
from tidegate.errors import BAD_INPUT, Failure
from tidegate.schemas import hosts_pb2, sockets_pb2, transfers_pb2
from tidegate.schemas.hosts import HOSTS
from tidegate.schemas.rows import new_rows
from tidegate.schemas.transfers import TRANSFERS
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.schema_form import Form
from tidegate.telemetry.schema_kafka import (
    HEAD_BYTES,
    kafka_definition,
    kafka_tables_differ,
    make_kafka_tables,
    stamped,
)
from tidegate.telemetry.schema_topics import OLDEST_DAYS, TOPICS
from tidegate.telemetry.store import open_store

SCHEMAS = Path(__file__).parents[2] / "schemas"
PAGE = (Path(__file__).parents[2] / "docs" / "clickhouse.md").read_text()
ROWS = 3000
DAY_NS = 86_400 * 10**9
BY_NAME = {topic.name: topic for topic in TOPICS}
MESSAGES = {
    "sockets": (sockets_pb2.SocketRow, new_rows),
    "hosts": (hosts_pb2.HostRow, HOSTS.new),
    "transfers": (transfers_pb2.TransferRow, TRANSFERS.new),
}
NOT_STARTED = "Shutdown was called"


def made_where_nothing_reads(client, statements):
    """Make the tables; returns how many of the Kafka engine were made, though their reading does not start here."""
    engines = 0
    for statement in statements:
        try:
            client.command(statement)
        except ClickHouseError as error:
            if NOT_STARTED not in str(error):
                raise
            engines += 1
    return engines


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with open_store(f"chdb://{tmp_path_factory.mktemp('views') / 'store'}") as store:
        migrate(store)
        # The keys that a server's named collection may hold, as docs/clickhouse.md shows them.
        store.command(
            "CREATE NAMED COLLECTION tidegate_kafka AS kafka_broker_list = '127.0.0.1:1',"
            " kafka_security_protocol = 'sasl_ssl', kafka_sasl_mechanism = 'SCRAM-SHA-512',"
            " kafka_sasl_username = 'clickhouse', kafka_sasl_password = 'x'"
        )
        assert made_where_nothing_reads(store, stamped(kafka_definition("tidegate_kafka", Form()))) == 3
        yield store


def names(rows, *columns):
    for column in columns:
        rows[column] = np.array([b"fra2", b"ams1.edge-1_x", b"a"])[np.arange(len(rows)) % 3]


def random_rows(kind, seed):
    """Rows with random bytes in every field; every tenth lies in one way or another."""
    draw = np.random.default_rng(seed)
    make = MESSAGES[kind][1]
    rows = make(ROWS)
    for name, (dtype, *_) in rows.dtype.fields.items():
        if name != "schema_version":
            rows[name] = np.frombuffer(draw.bytes(ROWS * dtype.itemsize), dtype)
    time_field = BY_NAME[kind].structure[3].split()[0].removeprefix("row_")
    rows[time_field] = time.time_ns() - draw.integers(0, (OLDEST_DAYS - 1) * DAY_NS, ROWS, np.uint64)
    names(rows, "pop", "host")
    bounds = {"traffic_class": 5, "measured": 8, "cpus": 9, "status": 600}
    bounds |= dict.fromkeys(("local_prefix_length", "remote_prefix_length"), 129)
    for name, bound in bounds.items():
        if name in rows.dtype.names:
            rows[name] = draw.integers(0, bound, ROWS)
    if kind == "hosts":
        rows["observed_us"] = draw.integers(1, DAY_NS // 1000, ROWS)
        rows["cpu_stalled_us"] = rows["observed_us"] // 3
    else:
        rows["congestion_control"] = np.array([b"bbr", b"cubic", b""])[np.arange(ROWS) % 3]
    lies = {
        "pop": [b"", b"a b", b"\0a", b"x\0y", b"\xff\xfe"],
        "host": [b"", b"a/b", b"a\nb", b"a\n", b"\xc3\xa9"],
        "congestion_control": [b"b r", b"\0bbr"],
        "traffic_class": [5, 256, 257, 2**32 - 1],
        "local_prefix_length": [129, 256],
        "remote_prefix_length": [129, 2**31],
        "measured": [8, 256],
        "cpus": [8193],
        "status": [1000, 65_536 + 200],
        "observed_us": [0, DAY_NS],
        time_field: [0, time.time_ns() + 2 * DAY_NS, 2**64 - 1, 1_420_070_400 * 10**9 - 1],
    }
    for name in rows.dtype.names:
        for value in lies.get(name, ()):
            rows[name][draw.integers(0, ROWS, 3)] = value
    return rows


def feed(client, kind, data, folder):
    """Let the tables behind the engine have a message, as the engine reads it: RowBinary."""
    path = folder / f"{kind}.bin"
    path.write_bytes(data)
    structure = ", ".join(BY_NAME[kind].structure).replace("'", "\\'")
    columns = ", ".join(column.split()[0] for column in BY_NAME[kind].structure)
    client.command(
        f"INSERT INTO kafka_{kind}_read ({columns}, topic) SELECT *, 'tidegate.{kind}'"  # noqa: S608 - names of our own schema
        f" FROM file('{path}', 'RowBinary', '{structure}')"
    )


def emptied(client, *tables):
    for table in tables:
        client.command(f"TRUNCATE TABLE {table}")


def content(client, table):
    return sorted(client.query(f"SELECT * EXCEPT (received_at) FROM {table}").result_rows, key=repr)  # noqa: S608


def left_out(client):
    return dict(client.query("SELECT reason, sum(rows) FROM kafka_left_out GROUP BY reason").result_rows)


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_views_admit_and_leave_out_what_ingest_does(client, tmp_path, kind, seed):
    table = BY_NAME[kind].table
    emptied(client, table, "kafka_left_out")
    rows = random_rows(kind, seed)
    feed(client, kind, rows.tobytes(), tmp_path)
    by_views, reasons = content(client, table), left_out(client)
    emptied(client, table)
    path = tmp_path / "rows.pb"
    path.write_bytes(rows.tobytes())
    expected = ingest_file(client, path).left_out
    by_ingest = content(client, table)
    assert 0 < len(by_ingest) < ROWS
    assert by_views == by_ingest
    assert reasons == expected


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_row_is_read_as_clickhouse_reads_it_by_the_proto_file(client, tmp_path, kind):
    message, make = MESSAGES[kind]
    rows = random_rows(kind, 3)
    path = tmp_path / f"{kind}.pb"
    path.write_bytes(rows.tobytes())
    structure = dict(column.split(maxsplit=1) for column in BY_NAME[kind].structure)
    fields = [field.name for field in message.DESCRIPTOR.fields]
    as_protobuf = ", ".join(
        f"{name} {structure[f'row_{name}'].replace('IPv6', 'FixedString(16)')}" for name in fields
    )
    file = f"file('{path}', 'Protobuf', '{as_protobuf}')"
    schema = f"SETTINGS format_schema = '{SCHEMAS / kind}.proto:{message.DESCRIPTOR.name}'"
    by_proto = client.query(
        f"SELECT {', '.join(f'hex({name})' for name in fields)} FROM {file} {schema}"  # noqa: S608
    ).result_rows
    quoted = ", ".join(BY_NAME[kind].structure)
    ours = ", ".join(f"hex(row_{name})" for name in fields)
    by_layout = client.query(f"SELECT {ours} FROM file('{path}', 'RowBinary', '{quoted}')").result_rows  # noqa: S608
    assert len(by_proto) == len(rows) == len(make(ROWS))
    assert by_layout == by_proto


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_row_of_another_version_or_frame_is_left_out_and_its_neighbours_are_not(client, tmp_path, kind):
    table = BY_NAME[kind].table
    emptied(client, table, "kafka_left_out")
    make = MESSAGES[kind][1]
    rows = make(50)
    rows[BY_NAME[kind].structure[3].split()[0].removeprefix("row_")] = time.time_ns()
    names(rows, "pop", "host")
    if kind == "hosts":
        rows["observed_us"] = 1
    version = int(rows["schema_version"][0])
    rows["schema_version"][7] += 1
    data = bytearray(rows.tobytes())
    first_tag = rows.dtype.fields["pop"][1] - 1
    data[rows.itemsize * 20 + first_tag] ^= 1
    data[rows.itemsize * 30] ^= 0x80
    feed(client, kind, bytes(data), tmp_path)
    assert left_out(client) == {f"not a row of schema version {version}": 3}
    assert len(content(client, table)) == 47


def test_old_rows_cannot_block_the_topic(client, tmp_path):
    emptied(client, "socket_samples", "kafka_left_out")
    rows = new_rows(200)
    now_ns = time.time_ns()
    rows["observed_at_ns"] = now_ns - np.arange(200, dtype=np.uint64) * DAY_NS
    names(rows, "pop", "host")
    feed(client, "sockets", rows.tobytes(), tmp_path)
    past_midnight = time.time_ns() // DAY_NS - now_ns // DAY_NS
    kept = len(content(client, "socket_samples"))
    assert kept in {OLDEST_DAYS + 1, OLDEST_DAYS + 1 - past_midnight}
    assert left_out(client) == {"older than the stream may be": 200 - kept}


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_that_cannot_be_read_is_kept_with_its_place(client, kind):
    emptied(client, BY_NAME[kind].table, "kafka_left_out", "kafka_damaged")
    client.insert(
        f"kafka_{kind}_read",
        [[f"tidegate.{kind}", 3, 17, "Cannot read all data", "r" * 5000]],
        column_names=["topic", "partition", "offset", "error", "raw_message"],
    )
    kept = client.query("SELECT * EXCEPT (received_at) FROM kafka_damaged").result_rows
    assert kept == [(f"tidegate.{kind}", 3, 17, "Cannot read all data", 5000, "r" * HEAD_BYTES)]
    assert (content(client, BY_NAME[kind].table), left_out(client)) == ([], {})


def test_the_page_counts_what_is_there_twice(client, tmp_path):
    emptied(client, "socket_samples")
    (sql,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    rows = new_rows(50)
    rows["observed_at_ns"], rows["cookie"] = time.time_ns(), np.arange(50)
    names(rows, "pop", "host")
    for first, twice in ((0, 0), (20, 30)):
        feed(client, "sockets", rows.tobytes()[first * rows.itemsize :], tmp_path)
        assert client.query(sql).result_rows == [(twice,)]


@pytest.mark.parametrize("cut", [1, 100, 505])
def test_a_cut_message_is_an_error_of_the_format(client, tmp_path, cut):
    with pytest.raises(ClickHouseError, match=r"CANNOT_READ_ALL_DATA|ATTEMPT_TO_READ_AFTER_EOF"):
        feed(client, "sockets", new_rows(3).tobytes()[:-cut], tmp_path)


def test_what_is_made_is_not_made_again_and_another_collection_is_seen(client):
    assert not make_kafka_tables(client, "tidegate_kafka", Form())
    assert kafka_tables_differ(client, "other_kafka", Form())
    client.command("DROP TABLE kafka_hosts_feed SYNC")
    assert kafka_tables_differ(client, "tidegate_kafka", Form())
    assert made_where_nothing_reads(client, stamped(kafka_definition("tidegate_kafka", Form()))) == 3
    assert not kafka_tables_differ(client, "tidegate_kafka", Form())


def test_a_collection_that_is_no_name_is_refused():
    with pytest.raises(Failure) as caught:
        kafka_definition("a, kafka_topic_list = 'b'", Form())
    assert caught.value.exit_code == BAD_INPUT
