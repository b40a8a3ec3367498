"""docs/clickhouse.md against the schema: its commands run, its table of retention is that of the migrations."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tidegate.cli import main
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.schema_kafka import GROUP
from tidegate.telemetry.schema_topics import TOPICS
from tidegate.telemetry.store import open_store

PAGE = (Path(__file__).parents[2] / "docs" / "clickhouse.md").read_text()
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs_as_far_as_it_goes_without_a_server(command):
    program, *arguments = shlex.split(command)
    assert program == "tidegate"
    ran = CliRunner().invoke(main, arguments)
    # The page's server is nobody's: the command says so, and nothing worse.
    expected = 0 if "--print" in arguments else 3
    assert ran.exit_code == expected, ran.stderr
    assert expected == 0 or "ch1.example.net" in ran.stderr


def test_every_table_is_on_the_page_with_its_retention(client):
    table = PAGE.partition("| table | holds | forgotten |")[2].partition("\n\n")[0]
    told = {}
    for line in table.splitlines()[2:]:
        names, _, kept = (cell.strip() for cell in line.strip("|").split("|"))
        tables, days = re.findall(r"`(\w+)`", names), [int(n) for n in re.findall(r"\d+", kept)]
        for place, name in enumerate(tables):
            told[name] = days[min(place, len(days) - 1)] if days else None
    made = client.query(
        "SELECT name, extract(engine_full, 'TTL .*toIntervalDay\\\\((\\\\d+)\\\\)') FROM system.tables"
        " WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    ).result_rows
    assert told == {name: int(days) if days else None for name, days in made}


def test_names_and_numbers_of_the_page_are_those_of_the_schema(client):
    for topic in TOPICS:
        assert f"`{topic.topic}`" in PAGE
        assert f"kafka_{topic.name}_feed" in PAGE
    assert f"`{GROUP}`" in PAGE
    window = client.command("SELECT engine_full FROM system.tables WHERE name = 'socket_samples'")
    (number,) = re.findall(r"non_replicated_deduplication_window = (\d+)", window)
    assert f"{int(number):,} inserts into a table" in PAGE
    for query in re.findall(r"`(SELECT .*? FROM kafka_.*?)`", PAGE):
        client.query(query)
