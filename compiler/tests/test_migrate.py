"""The schema comes up once, in order, again after a crash, and never by a changed or unknown migration."""

import hashlib
from itertools import pairwise

import pytest
from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.schemas.sockets_pb2 import SocketRow, TrafficClass
from tidegate.telemetry.migrate import Migration, migrate, migrations
from tidegate.telemetry.store import open_store


@pytest.fixture
def client():
    with open_store("chdb://memory") as store:
        yield store


def migration(version, sql):
    return Migration(version, f"{version:04}_m.sql", sql, hashlib.sha256(sql.encode()).hexdigest())


FIRST = migration(1, "-- why;\nCREATE TABLE IF NOT EXISTS a (n Int8) ENGINE = Memory;\n")
MAKE_B = "CREATE TABLE IF NOT EXISTS b (n Int8) ENGINE = Memory;\n"
SECOND = migration(2, MAKE_B + "ALTER TABLE a ADD COLUMN IF NOT EXISTS m String DEFAULT ';';\n")


def columns(client, table):
    rows = client.query(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}",
        parameters={"table": table},
    ).result_rows
    return dict(rows)


def test_what_tidegate_carries_is_applied_once(client):
    versions = tuple(m.version for m in migrations())
    assert all(after == before + 1 for before, after in pairwise((0, *versions)))
    assert migrate(client) == versions
    assert migrate(client) == ()


def test_a_sample_has_a_column_for_every_field_of_the_schema(client):
    migrate(client)
    fields = [field.name.removesuffix("_ns") for field in SocketRow.DESCRIPTOR.fields]
    found = columns(client, "socket_samples")
    assert list(found) == [*fields, "received_at"]
    classes = ", ".join(
        f"'{name.removeprefix('TRAFFIC_CLASS_').lower()}' = {number}" for name, number in TrafficClass.items()
    )
    assert found["traffic_class"] == f"Enum8({classes})"


def test_only_what_is_missing_is_applied(client):
    assert migrate(client, [FIRST]) == (1,)
    assert migrate(client, [FIRST, SECOND]) == (2,)
    assert list(columns(client, "a")) == ["n", "m"]
    recorded = client.query("SELECT version, name FROM schema_migrations ORDER BY version").result_rows
    assert recorded == [(1, FIRST.name), (2, SECOND.name)]


def test_a_crash_in_the_middle_is_mended(client):
    migrate(client, [FIRST])
    client.command(SECOND.statements[0])  # where the crash came before the second statement
    assert migrate(client, [FIRST, SECOND]) == (2,)
    assert list(columns(client, "a")) == ["n", "m"]


def test_a_failing_statement_leaves_the_migration_unrecorded(client):
    broken = migration(2, MAKE_B + "ALTER TABLE nowhere DROP COLUMN n;\n")
    with pytest.raises(Exception, match="nowhere"):
        migrate(client, [FIRST, broken])
    assert migrate(client, [FIRST, SECOND]) == (2,)


def test_a_changed_migration_is_refused(client):
    migrate(client, [FIRST])
    changed = migration(1, FIRST.sql + "-- a word\n")
    with pytest.raises(Failure) as caught:
        migrate(client, [changed, SECOND])
    assert caught.value.exit_code == BAD_INPUT
    assert caught.value.message == "migration 0001_m.sql was changed after the telemetry store applied it"
    assert columns(client, "b") == {}


def test_a_newer_store_is_refused(client):
    migrate(client, [FIRST, SECOND])
    with pytest.raises(Failure) as caught:
        migrate(client, [FIRST])
    assert caught.value.exit_code == MISSING_PART
    assert "0002_m.sql, which this Tidegate does not know" in caught.value.message
