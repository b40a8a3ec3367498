"""A few rows go in as they are, and at once."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate.json_insertion import insert_json
from tidegate.telemetry.store import open_store

COLUMNS = ("name", "number", "least", "runs", "seen")
NUMBER = st.integers(0, 2**64 - 1)
ROW = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"])),
    NUMBER,
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.tuples(NUMBER, NUMBER), max_size=3),
    st.integers(0, 2**32 - 1),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with open_store(f"chdb://{tmp_path_factory.mktemp('store') / 'store'}") as opened:
        opened.command(
            "CREATE TABLE few (name String, number UInt64, least Int64, runs Array(Tuple(UInt64, UInt64)),"
            " seen DateTime('UTC'), other DEFAULT 7) ENGINE = MergeTree ORDER BY ()"
        )
        yield opened


@given(st.lists(ROW, max_size=5))
@settings(max_examples=50, deadline=None)
def test_every_value_comes_back_as_it_was(client, rows):
    client.command("TRUNCATE TABLE few")
    insert_json(client, "few", COLUMNS, rows)
    found = client.query("SELECT * EXCEPT seen, toUnixTimestamp(seen) FROM few").result_rows
    assert sorted((*row[:3], list(map(tuple, row[3])), row[5], row[4]) for row in found) == sorted(
        (*row, 7) for row in rows
    )


# The client's own insert imports pandas: half a second before the first block of a topic.
CLAIMING = """
import sys
from tidegate.telemetry.kafka_ledger import Claim, Range, claim, progress_of
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

with open_store(sys.argv[1]) as client:
    migrate(client)
    claim(client, "sockets", Claim("a topic", (Range(0, 0, 9), Range(1, 0, 2**63 - 1))))
    print(progress_of(client, "a topic").next, "pandas" in sys.modules)
"""


def test_a_claim_imports_no_pandas(tmp_path):
    command = [sys.executable, "-c", CLAIMING, f"chdb://{tmp_path / 'store'}"]
    claiming = subprocess.run(command, capture_output=True, text=True, check=True)
    assert claiming.stdout == f"{{0: 9, 1: {2**63 - 1}}} False\n"
