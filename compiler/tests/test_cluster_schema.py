"""The cluster form of the schema: real replicated and distributed tables, made of the same migrations.

The embedded engine makes them by a test keeper in its own process. It has neither DDL of a cluster nor running
replication, so that `ON CLUSTER` is taken off what it is given; what it parses is the whole.
"""

import json
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from click.testing import CliRunner
from tidegate.cli import main
from tidegate.errors import BAD_INPUT, Failure
from tidegate.telemetry.migrate import definition, migrate, migrations
from tidegate.telemetry.schema_form import SHARDED, Form, form_of, rendered
from tidegate.telemetry.schema_kafka import kafka_definition
from tidegate.telemetry.store import open_store

FLEET = Form("fleet")
# State, not telemetry: a quiet topic whose place were forgotten would be read anew.
KEPT_FOR_EVER = {"schema_migrations", "kafka_ranges"}


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


def test_one_server_gets_the_migrations_as_they_are_written():
    written = [statement for migration in migrations() for statement in migration.statements]
    assert list(definition(Form()))[1:] == written


def test_every_statement_parses_and_is_for_the_whole_cluster(client):
    statements = (*definition(FLEET), *kafka_definition("tidegate_kafka", FLEET))
    assert len(statements) > len(definition(Form()))
    for statement in statements:
        parsed = client.query("SELECT formatQuery({q:String})", parameters={"q": statement}).result_rows[0][0]
        if not re.match(r"ALTER TABLE (?!\w+_local)", parsed):
            assert "ON CLUSTER fleet" in parsed


def test_every_table_of_telemetry_forgets(client):
    tables = dict(
        client.query(
            "SELECT name, engine_full FROM system.tables"
            " WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        ).result_rows
    )
    assert tables.keys() > KEPT_FOR_EVER
    assert {name for name, engine in tables.items() if " TTL " not in engine} == KEPT_FOR_EVER


def test_a_closed_window_is_known_for_longer_than_it_has_rows(client):
    engines = dict(client.query("SELECT name, engine_full FROM system.tables").result_rows)
    (rows,), (known,) = (
        re.findall(r"TTL closed_at \+ toIntervalDay\((\d+)\)", engines[name])
        for name in ("prefix_windows", "closed_windows")
    )
    assert int(known) > int(rows)


def test_a_store_keeps_its_form(client):
    assert form_of(client) == Form()
    with pytest.raises(Failure, match="has the tables of a single server, not of cluster fleet") as caught:
        migrate(client, form=FLEET)
    assert caught.value.exit_code == BAD_INPUT


def test_an_empty_store_has_no_form():
    with open_store("chdb://memory") as store:
        assert form_of(store) in (None, Form())


@pytest.mark.parametrize("name", ["", "a'b", "fleet; DROP", "1st", "x" * 65])
def test_what_is_no_cluster_is_refused(name):
    with pytest.raises(Failure, match="is not the name of a cluster"):
        Form(name)


def test_a_statement_without_a_cluster_form_is_an_error():
    with pytest.raises(ValueError, match="no cluster form of: DROP"):
        rendered("DROP TABLE socket_samples", FLEET)


# --- the command ------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, ["schema", *arguments])


def test_print_shows_all_of_it_and_opens_no_store(tmp_path):
    single = run("--print")
    assert (single.exit_code, "Replicated" in single.stdout) == (0, False)
    printed = CliRunner().invoke(
        main, ["--dsn", f"chdb://{tmp_path / 's'}", "schema", "--cluster", "fleet", "--kafka", "k", "--print"]
    )
    assert printed.exit_code == 0
    assert list(tmp_path.iterdir()) == []
    statements = [part.strip() for part in re.split(r";\n\n", printed.stdout) if part.strip()]
    assert statements == [*definition(FLEET), *kafka_definition("k", FLEET)]


@pytest.mark.parametrize(
    "arguments", [("--print", "--check"), ("--print", "--json"), ("--cluster", "a b", "--print")]
)
def test_wrong_usage(arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_the_embedded_store_has_no_kafka_engine_and_says_what_to_do(tmp_path, check):
    ran = CliRunner().invoke(main, ["--dsn", f"chdb://{tmp_path / 's'}", "schema", "--kafka", "k", *check])
    assert ran.exit_code == 2
    assert "tidegate ingest kafka://" in ran.stderr


# --- made for real ----------------------------------------------------------------------------------------------

CONFIGURATION = """
<clickhouse>
  <tcp_port>9000</tcp_port>
  <zookeeper><implementation>testkeeper</implementation></zookeeper>
  <macros><shard>01</shard><replica>a</replica></macros>
  <remote_servers><fleet>
    <shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
  </fleet></remote_servers>
</clickhouse>
"""
# A process of its own, which ends without the engine's farewell: that waits for replication, which never began.
MAKE = """
import json, os, re, sys
import chdb
engine = chdb.connect(f"{sys.argv[1]}?config-file={sys.argv[2]}")
ask = lambda text: [line.split("\\t") for line in engine.query(text, "TSVRaw").data().splitlines()]
ask("CREATE DATABASE tidegate")
ask("USE tidegate")
for statement in json.load(sys.stdin):
    ask(statement.replace(" ON CLUSTER 'fleet'", ""))
tables = ask("SELECT name, engine, comment FROM system.tables WHERE database = 'tidegate'")
paths = ask("SELECT table, zookeeper_path, replica_name FROM system.replicas WHERE database = 'tidegate'")
columns = ask("SELECT table, name, type FROM system.columns WHERE database = 'tidegate' ORDER BY table, position")
print(json.dumps([tables, paths, columns]), flush=True)
os._exit(0)
"""


def in_a_cluster(tmp_path, statements):
    config = tmp_path / "config.xml"
    config.write_text(CONFIGURATION)
    command = [sys.executable, "-c", MAKE, str(tmp_path / "store"), str(config)]
    ran = subprocess.run(
        command, input=json.dumps(statements), capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_engine_makes_its_replicated_tables(tmp_path):
    created = [statement for statement in definition(FLEET) if "\nENGINE = Replicated" in statement]
    tables, paths, _ = in_a_cluster(tmp_path, created)
    assert len(tables) == len(created)
    assert all(engine.startswith("Replicated") for _, engine, _ in tables)
    assert {name: comment for name, _, comment in tables if comment} == {
        "schema_migrations": "tidegate cluster fleet"
    }
    placed = {table: (path, replica) for table, path, replica in paths}
    assert placed["socket_samples_local"] == ("/clickhouse/tables/01/tidegate/socket_samples_local", "a")
    assert placed["kafka_ranges"] == ("/clickhouse/tables/whole/tidegate/kafka_ranges", "01_a")


def test_all_statements_leave_the_columns_of_one_server(client, tmp_path):
    tables, _, columns = in_a_cluster(tmp_path, [unreplicated(each) for each in definition(FLEET)])
    assert {name for name, engine, _ in tables if engine == "Distributed"} == SHARDED

    def of(rows, table):
        return [(name, kind) for found, name, kind in rows if found == table]

    single = client.query(
        "SELECT table, name, type FROM system.columns WHERE database = currentDatabase() ORDER BY table, position"
    ).result_rows
    for name in {table for table, *_ in single}:
        assert of(columns, name) == of(single, name)
        assert name not in SHARDED or of(columns, f"{name}_local") == of(single, name)


def unreplicated(statement):
    """With plain engines: a table whose replication does not run takes no ALTER."""
    return re.sub(r"Replicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?(.*?)\)", r"\1(\2)", statement)


def test_migrations_are_numbered_without_a_gap():
    assert all(after.version == before.version + 1 for before, after in pairwise(migrations()))
