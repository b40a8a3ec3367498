"""`tidegate schema`: what is pending is told without a change, applied once, and then nothing is pending."""

import json

from click.testing import CliRunner
from tidegate.cli import main
from tidegate.telemetry.migrate import migrations
from tidegate.telemetry.store import open_store


def schema(dsn, *arguments):
    ran = CliRunner().invoke(main, ["--dsn", dsn, "schema", "--json", *arguments])
    return ran.exit_code, json.loads(ran.stdout)


def test_the_question_changes_nothing_and_the_answer_is_applied_once(tmp_path):
    dsn = f"chdb://{tmp_path / 'store'}"
    names = [migration.name.removesuffix(".sql") for migration in migrations()]
    assert names
    assert schema(dsn, "--check") == (1, {"applied": [], "pending": names})
    assert list(tmp_path.iterdir()) == []

    assert schema(dsn) == (0, {"applied": names, "pending": []})
    assert schema(dsn, "--check") == (0, {"applied": [], "pending": []})
    assert schema(dsn) == (0, {"applied": [], "pending": []})


def test_the_question_to_an_empty_store_makes_no_table(tmp_path):
    dsn = f"chdb://{tmp_path / 'store'}"
    with open_store(dsn):
        pass
    assert schema(dsn, "--check")[0] == 1
    with open_store(dsn) as client:
        assert client.query("SHOW TABLES").result_rows == []
