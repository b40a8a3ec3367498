"""The example policies: every clause of every select is decided by a test, and their recording is made here.

Run with TIDEGATE_UPDATE=1 to write the recording anew.
"""

import json
import os
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner
from example_recording import recording
from tidegate.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "dsl" / "examples"


def test_the_recording_is_what_is_made_of_its_description():
    path = EXAMPLES / "recorded.pb"
    if os.environ.get("TIDEGATE_UPDATE") == "1":
        path.write_bytes(recording())
    assert path.read_bytes() == recording()


@pytest.fixture(scope="module")
def tested():
    return CliRunner().invoke(main, ["test", str(EXAMPLES), "--coverage", "--json"])


def test_every_test_of_the_examples_passes(tested):
    assert tested.exit_code == 0, tested.output


def test_a_test_decides_on_every_clause_of_the_examples(tested):
    selects = json.loads(tested.stdout)["coverage"]["selects"]
    clauses = [clause for select in selects for clause in select["clauses"]]
    assert len(selects) == 3
    assert [clause for clause in clauses if not clause["tests"]] == []


def test_the_page_shows_what_is_printed():
    command = "tidegate test dsl/examples/edge.tide"
    with chdir(ROOT):
        done = CliRunner().invoke(main, command.split()[1:])
    page = (ROOT / "docs" / "test.md").read_text(encoding="utf-8")
    assert f"```console\n$ {command}\n{done.stdout}```" in page
