"""Files of several blocks, which are in memory, in the engine and in the ledger at different times."""

import numpy as np
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError
from hypothesis import given
from hypothesis import strategies as st
from tidegate.errors import Failure
from tidegate.schemas.rows import ROW_LENGTH, new_rows
from tidegate.telemetry import rowfile
from tidegate.telemetry.columns import names_of
from tidegate.telemetry.decode import admit, decode
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.insertion import insert_rows
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.native import NativeBlock
from tidegate.telemetry.store import open_store

BLOCK = 100
MADE_NS = 1_795_132_800 * 10**9


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(rowfile, "BLOCK_ROWS", BLOCK)
    with open_store("chdb://memory") as store:
        migrate(store)
        store.command("TRUNCATE TABLE socket_samples")
        store.command("TRUNCATE TABLE ingested_blocks")
        yield store


def some_rows(count, first=0):
    rows = new_rows(count)
    rows["observed_at_ns"] = MADE_NS + np.arange(count)
    rows["pop"], rows["host"] = b"fra2", b"fra2-edge1"
    rows["congestion_control"] = np.where(np.arange(count) % 3, b"bbr", b"cubic")
    rows["cookie"] = first + np.arange(count)
    return rows


def stored(client):
    return client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]


@pytest.mark.parametrize("count", [BLOCK, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 7])
def test_every_block_arrives_and_is_reported_in_order(client, tmp_path, count):
    path = tmp_path / "rows.pb"
    some_rows(count).tofile(path)
    seen = []
    report = ingest_file(client, path, on_progress=lambda *step: seen.append(step))
    assert (report.rows, report.added) == (count, count)
    assert seen == [(done, count) for done in (*range(0, count, BLOCK), count)]
    assert stored(client) == (count, count)
    algorithms = client.query("SELECT congestion_control, count() FROM socket_samples GROUP BY 1 ORDER BY 1")
    assert algorithms.result_rows == [("bbr", count - (count + 2) // 3), ("cubic", (count + 2) // 3)]


def test_blocks_larger_than_a_pipe_take_each_others_memory_only_when_the_engine_has_read_it(
    client, tmp_path, monkeypatch
):
    monkeypatch.setattr(rowfile, "BLOCK_ROWS", 4000)
    path = tmp_path / "rows.pb"
    rows = some_rows(9 * 4000)
    rows.tofile(path)
    assert ingest_file(client, path).added == len(rows)
    found = client.query(
        "SELECT count(), uniqExact(cookie), sum(toUnixTimestamp64Nano(observed_at) - cookie = {made:Int64})"
        " FROM socket_samples",
        parameters={"made": MADE_NS},
    )
    assert found.result_rows == [(len(rows), len(rows), len(rows))]


def test_an_insert_that_the_engine_refuses_ends_though_nobody_reads_its_block(client):
    block = NativeBlock()
    assert decode([some_rows(20_000)], 20_000, block, MADE_NS).all_good
    client.command("RENAME TABLE socket_samples TO elsewhere")
    try:
        with pytest.raises(ClickHouseError):
            insert_rows(client, block, "0" * 64)
    finally:
        client.command("RENAME TABLE elsewhere TO socket_samples")
    insert_rows(client, block, "0" * 64)
    assert stored(client) == (20_000, 20_000)


@given(
    before=st.integers(0, 400),
    room=st.integers(0, 40),
    lengths=st.lists(st.integers(0, 30), max_size=6),
    kept=st.integers(1, 5),
)
def test_a_block_holds_the_rows_added_to_it_whatever_room_was_reserved(before, room, lengths, kept):
    rows = some_rows(sum(lengths))
    block = NativeBlock()
    block.reserve(before)
    block.reserve(room)
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        block.add(rows[end - length : end])
    for name, column in block.columns.items():
        assert (column == rows[name]).all(), name

    good = np.arange(len(rows)) % kept == 0
    rows["traffic_class"][~good] = 99
    block.columns["traffic_class"][:] = rows["traffic_class"]
    assert admit(block, MADE_NS).count == good.sum()
    sent = b"".join(block.parts)
    if good.any():
        exact = NativeBlock()
        assert decode([rows[good]], int(good.sum()), exact, MADE_NS).all_good
        assert sent == b"".join(exact.parts)


def test_of_a_file_that_shares_its_beginning_only_the_rest_is_added(client, tmp_path):
    first, second = tmp_path / "first.pb", tmp_path / "second.pb"
    some_rows(3 * BLOCK).tofile(first)
    some_rows(6 * BLOCK).tofile(second)
    ingest_file(client, first)
    report = ingest_file(client, second)
    assert (report.rows, report.added) == (6 * BLOCK, 3 * BLOCK)
    assert stored(client) == (6 * BLOCK, 6 * BLOCK)


@pytest.mark.parametrize("change", ["another row", "cut"])
def test_a_file_that_changes_between_its_verification_and_its_load_is_refused(client, tmp_path, change):
    path = tmp_path / "rows.pb"
    some_rows(6 * BLOCK).tofile(path)

    def when_verified(done, _):
        if done:
            return
        if change == "cut":
            with path.open("r+b") as file:
                file.truncate(3 * BLOCK * ROW_LENGTH)
        else:
            changed = some_rows(6 * BLOCK)
            changed["cookie"][4 * BLOCK] = 2**40
            changed.tofile(path)

    with pytest.raises(Failure, match="changed while it was read"):
        ingest_file(client, path, on_progress=when_verified)
    some_rows(6 * BLOCK).tofile(path)
    ingest_file(client, path)
    assert stored(client) == (6 * BLOCK, 6 * BLOCK)


@pytest.mark.parametrize(
    "whole", [BLOCK, 2 * BLOCK, rowfile.PIECE_ROWS], ids=["a block", "two blocks", "a piece"]
)
def test_a_tail_where_a_block_or_a_piece_ends_is_refused_by_its_byte(client, tmp_path, monkeypatch, whole):
    if whole == rowfile.PIECE_ROWS:
        monkeypatch.setattr(rowfile, "BLOCK_ROWS", 2 * whole)
    path = tmp_path / "rows.pb"
    path.write_bytes(some_rows(whole).tobytes() + b"\xf8")
    with pytest.raises(Failure, match=rf"byte {whole * ROW_LENGTH}: "):
        ingest_file(client, path)
    assert stored(client) == (0, 0)


def test_rows_that_cannot_be_true_are_left_out_of_every_block(client, tmp_path):
    rows = some_rows(5 * BLOCK)
    rows["traffic_class"][::BLOCK] = 256  # whose lowest byte alone would be a class
    rows["pop"][7 :: 2 * BLOCK] = b"not a name"
    path = tmp_path / "rows.pb"
    rows.tofile(path)
    report = ingest_file(client, path)
    assert report.left_out == {"unknown traffic class": 5, "POP is not a name": 3}
    assert stored(client) == (5 * BLOCK - 8, 5 * BLOCK - 8)


@given(st.lists(st.binary(max_size=32).map(lambda name: name.rstrip(b"\0")), max_size=60))
def test_names_are_each_said_once_and_where_they_were(names):
    column = np.array(names, "S32")
    found = names_of(column)
    assert found.values[found.codes].tolist() == names
    assert sorted(found.values.tolist()) == sorted(set(names))
