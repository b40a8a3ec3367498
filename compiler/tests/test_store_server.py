"""The same store behind HTTP: schema, ingest and refusals, over the driver's own transport."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tidegate.errors import MISSING_PART, Failure
from tidegate.schemas.rows import new_rows
from tidegate.telemetry import rowfile
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import PASSWORD, PASSWORD_FILE, open_store

SERVER = Path(__file__).with_name("clickhouse_over_http.py")


@pytest.fixture(scope="module")
def port():
    with subprocess.Popen(
        [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield int(server.stdout.readline())
        server.kill()  # all it has is in memory; at an orderly end the embedded engine may wait for ever


def test_a_server_takes_the_schema_and_each_file_once(port, tmp_path):
    rows = new_rows(1000)
    rows["observed_at_ns"] = 1_795_132_800 * 10**9 + np.arange(1000)
    rows["pop"], rows["host"], rows["traffic_class"], rows["cookie"] = (
        b"fra2",
        b"fra2-edge1",
        1,
        np.arange(1000),
    )
    path = tmp_path / "fra2.pb"
    path.write_bytes(rows.tobytes())
    with open_store(f"http://127.0.0.1:{port}") as client:
        assert migrate(client)
        assert migrate(client) == ()
        assert ingest_file(client, path).added == 1000
        assert ingest_file(client, path).duplicate
        client.command("TRUNCATE TABLE ingested_blocks")
        ingest_file(client, path)  # the deduplication token's turn
        stored = client.query(
            "SELECT pop, toString(traffic_class), uniqExact(cookie), count() FROM socket_samples GROUP BY ALL"
        )
        assert stored.result_rows == [("fra2", "client", 1000, 1000)]


def test_a_server_takes_the_blocks_of_a_file_side_by_side(port, tmp_path, monkeypatch):
    monkeypatch.setattr(rowfile, "BLOCK_ROWS", 100)
    rows = new_rows(950)
    rows["observed_at_ns"] = 1_795_132_800 * 10**9 + np.arange(950)
    rows["pop"], rows["host"], rows["cookie"] = b"ams1", b"ams1-edge1", np.arange(950)
    path = tmp_path / "ams1.pb"
    rows.tofile(path)
    seen = []
    with open_store(f"http://127.0.0.1:{port}") as client:
        migrate(client)
        assert ingest_file(client, path, on_progress=lambda done, _: seen.append(done)).added == 950
        stored = client.query("SELECT count(), uniqExact(cookie) FROM socket_samples WHERE pop = 'ams1'")
        assert stored.result_rows == [(950, 950)]
    assert seen == [*range(0, 1000, 100), 950]


def test_a_password_comes_from_the_environment_or_a_file(port, tmp_path, monkeypatch):
    dsn = f"http://reader@127.0.0.1:{port}/tidegate"
    with pytest.raises(Failure) as caught, open_store(dsn):
        pass
    assert caught.value.exit_code == MISSING_PART
    assert "refused `reader`: reader: Authentication failed" in caught.value.message
    assert PASSWORD in caught.value.help
    monkeypatch.setenv(PASSWORD, "s3cret")
    with open_store(dsn) as client:
        assert client.query("SELECT 1").result_rows == [(1,)]
    monkeypatch.delenv(PASSWORD)
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv(PASSWORD_FILE, str(tmp_path / "secret"))
    with open_store(dsn) as client:
        assert client.query("SELECT 1").result_rows == [(1,)]


def test_a_missing_database_is_named_with_the_way_out(port):
    with pytest.raises(Failure) as caught, open_store(f"http://127.0.0.1:{port}/elsewhere"):
        pass
    assert caught.value.exit_code == MISSING_PART
    assert "CREATE DATABASE elsewhere" in caught.value.help


def test_what_the_server_refuses_later_is_told_in_its_words(port):
    with pytest.raises(Failure) as caught, open_store(f"http://127.0.0.1:{port}") as client:
        client.command("DROP TABLE nowhere")
    assert caught.value.exit_code == MISSING_PART
    message = caught.value.message
    assert message.startswith(f"the telemetry store http://127.0.0.1:{port} refused: ")
    assert message.endswith("(UNKNOWN_TABLE)")
    assert "nowhere" in message
