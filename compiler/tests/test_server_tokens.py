"""Insert tokens: what is repeated after a crash is added once, neither twice nor never, and how long that holds."""

import subprocess
import sys

import numpy as np
import pytest
from tidegate.schemas.rows import new_rows
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.schema_tokens import forget_tokens_without_rows
from tidegate.telemetry.store import open_store

ROWS = 100

# Loads a file and dies at once, as a SIGKILL would have it: nothing of the engine is closed.
LOAD_AND_DIE = """
import os, sys
from pathlib import Path
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
with open_store(sys.argv[1]) as client:
    migrate(client)
    client.command("SYSTEM STOP MERGES")
    for path in sys.argv[2:]:
        ingest_file(client, Path(path))
    client.command("TRUNCATE TABLE ingested_blocks")  # as if it had died before the ledger was written
    os._exit(0)
"""


def write(path, first_cookie, day=0):
    rows = new_rows(ROWS)
    rows["observed_at_ns"] = (1_795_132_800 + 86_400 * day) * 10**9 + np.arange(ROWS)
    rows["pop"], rows["host"], rows["traffic_class"] = b"fra2", b"fra2-edge1", 1
    rows["cookie"] = first_cookie + np.arange(ROWS)
    path.write_bytes(rows.tobytes())
    return path


def load_and_die(store, *paths):
    subprocess.run(
        [sys.executable, "-c", LOAD_AND_DIE, f"chdb://{store}", *map(str, paths)], check=True, timeout=120
    )


def counted(client):
    return client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]


def parts_of(store):
    """Directories of parts of socket_samples, the oldest first."""
    (log,) = (each for each in store.glob("store/*/*/deduplication_logs/*.txt") if each.stat().st_size)
    return sorted(each for each in log.parents[1].glob("20*_*_*_0"))


def test_a_token_whose_part_never_came_does_not_swallow_the_retry(tmp_path):
    store, first, second = tmp_path / "store", write(tmp_path / "1.pb", 0), write(tmp_path / "2.pb", ROWS)
    load_and_die(store, first, second)
    # Where a kill between the log's write and the part's rename leaves it.
    newest = parts_of(store)[-1]
    newest.rename(newest.with_name(f"tmp_insert_{newest.name}"))
    with open_store(f"chdb://{store}") as client:
        assert counted(client) == (ROWS, ROWS)
        for path in (first, second):
            ingest_file(client, path)
        assert counted(client) == (2 * ROWS, 2 * ROWS)


def test_a_token_whose_part_was_merged_is_kept(tmp_path):
    store = tmp_path / "store"
    paths = [write(tmp_path / f"{n}.pb", n * ROWS) for n in range(3)]
    with open_store(f"chdb://{store}") as client:
        migrate(client)
        for path in paths:
            ingest_file(client, path)
        client.command("OPTIMIZE TABLE socket_samples FINAL")
        client.command("TRUNCATE TABLE ingested_blocks")
    assert forget_tokens_without_rows(store) == 0
    with open_store(f"chdb://{store}") as client:
        for path in paths:
            ingest_file(client, path)
        assert counted(client) == (3 * ROWS, 3 * ROWS)


def test_a_line_that_was_cut_goes_and_whole_ones_stay(tmp_path):
    table = tmp_path / "store" / "abc" / "uuid"
    (table / "deduplication_logs").mkdir(parents=True)
    for name in ("20260101_1_4_1", "20260102_5_5_0_9", "tmp_insert_20260103_1_1_0"):
        (table / name).mkdir()
    log = table / "deduplication_logs" / "deduplication_log_1.txt"
    kept = "1\t20260101_2_2_0\ta\n2\t20260109_1_1_0\tb\n1\t20260102_5_5_0\tc\n"
    log.write_text(f"{kept}1\t20260103_1_1_0\td\n1\t20260102_6_6_0\te\n1\t2026")
    assert forget_tokens_without_rows(tmp_path) == 3
    assert log.read_text() == kept
    assert forget_tokens_without_rows(tmp_path) == 0


@pytest.fixture
def small_window(tmp_path):
    """A store that remembers three tokens a table."""
    with open_store(f"chdb://{tmp_path / 'store'}") as client:
        migrate(client)
        client.command("ALTER TABLE socket_samples MODIFY SETTING non_replicated_deduplication_window = 3")
        yield client


def test_a_loaded_file_is_refused_by_the_ledger_however_many_inserts_came_after_it(small_window, tmp_path):
    paths = [write(tmp_path / f"{n}.pb", n * ROWS) for n in range(6)]
    for path in paths:
        ingest_file(small_window, path)
    assert all(ingest_file(small_window, path).duplicate for path in paths)
    assert counted(small_window) == (6 * ROWS, 6 * ROWS)


@pytest.mark.parametrize(("others", "copies"), [(2, 1), (4, 2)])
def test_without_its_entry_in_the_ledger_a_block_is_known_for_as_many_inserts_as_the_window_has(
    small_window, tmp_path, others, copies
):
    first = write(tmp_path / "first.pb", 0)
    ingest_file(small_window, first)
    small_window.command("TRUNCATE TABLE ingested_blocks")  # it died before the ledger was written
    for n in range(others):
        ingest_file(small_window, write(tmp_path / f"{n}.pb", (n + 1) * ROWS))
    ingest_file(small_window, first)
    assert counted(small_window) == ((others + copies) * ROWS, (others + 1) * ROWS)


def test_the_window_is_longer_than_a_row_lives_at_an_insert_every_five_seconds(tmp_path):
    with open_store(f"chdb://{tmp_path / 'store'}") as client:
        migrate(client)
        for table in ("socket_samples", "transfers", "host_health"):
            engine = client.command(
                "SELECT engine_full FROM system.tables WHERE database = 'tidegate' AND name = {t:String}",
                parameters={"t": table},
            )
            window = int(engine.partition("non_replicated_deduplication_window = ")[2].partition(",")[0])
            days = int(engine.partition("TTL received_at + toIntervalDay(")[2].partition(")")[0])
            assert window > days * 86_400 / 5
