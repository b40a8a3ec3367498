"""Files of host health and of transfers: every value arrives, once, and nothing of a damaged file does."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate.errors import Failure
from tidegate.schemas.hosts import HOSTS, PRESSURE, STAT
from tidegate.schemas.rows import new_rows
from tidegate.schemas.transfers import TRANSFERS
from tidegate.telemetry.hosts import HEALTH
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.record_ingest import Loaded, ingest_records, kind_of
from tidegate.telemetry.record_kinds import RECORD_KINDS
from tidegate.telemetry.store import open_store
from tidegate.telemetry.transfers import TRANSFER

SCHEMA_VERSION = range(3, 7)  # bytes of a row, behind its length and the tag
NOON = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()) * 10**9
KINDS = pytest.mark.parametrize("kind", [HEALTH, TRANSFER], ids=lambda kind: kind.table)


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


@pytest.fixture(autouse=True)
def empty(client):
    for table in ("host_health", "transfers", "ingested_blocks"):
        client.command(f"DROP TABLE {table} SYNC")
    client.command("TRUNCATE TABLE schema_migrations")
    migrate(client)


def some(kind, count=3):
    rows = kind.form.new(count)
    rows["pop"], rows["host"] = b"fra2", b"fra2-edge1"
    rows[kind.time] = NOON + np.arange(count)
    if kind is HEALTH:
        rows["observed_us"], rows["measured"] = 60_000_000, PRESSURE | STAT
    return rows


def write(path, rows):
    path.write_bytes(rows.tobytes())
    return path


def count(client, kind):
    return client.query(f"SELECT count() FROM {kind.table}").result_rows[0][0]  # noqa: S608 - ours


@KINDS
def test_a_file_tells_what_it_is_and_a_file_of_sockets_is_neither(tmp_path, kind):
    assert RECORD_KINDS[kind_of(write(tmp_path / "rows", some(kind)))] is kind
    assert kind_of(write(tmp_path / "sockets", new_rows(3))) is None
    assert kind_of(write(tmp_path / "empty", some(kind, 0))) is None


@KINDS
def test_loading_again_under_whatever_name_adds_nothing(client, tmp_path, kind):
    rows = some(kind)
    assert ingest_records(client, write(tmp_path / "a", rows), kind) == Loaded(3, 3, {})
    assert ingest_records(client, write(tmp_path / "b", rows), kind) == Loaded(3, 0, {})
    client.command("TRUNCATE TABLE ingested_blocks")  # as a crash between the rows and the ledger leaves it
    ingest_records(client, tmp_path / "a", kind)
    assert count(client, kind) == 3


@KINDS
@pytest.mark.parametrize("damage", ["cut", "frame", "version"])
def test_nothing_of_a_damaged_file_is_loaded_and_the_byte_is_named(client, tmp_path, kind, damage):
    length = kind.form.length
    data = bytearray(some(kind).tobytes())
    if damage == "cut":
        del data[-1]
    elif damage == "frame":
        data[2 * length] ^= 1
    else:
        data[2 * length + 3] = 9
    path = tmp_path / "damaged"
    path.write_bytes(data)
    with pytest.raises(Failure, match=f"byte {2 * length}:"):
        ingest_records(client, path, kind)
    assert count(client, kind) == 0


@KINDS
def test_rows_that_cannot_be_are_left_out_by_reason(client, tmp_path, kind):
    rows = some(kind, 5)
    rows["pop"][0] = b"x\0y"
    rows["host"][1] = b"a b"
    rows[kind.time][2] = 2**64 - 1
    if kind is HEALTH:
        rows["cpu_stalled_us"][3] = 60_000_001
    else:
        rows["remote_prefix_length"][3] = 129
    loaded = ingest_records(client, write(tmp_path / "rows", rows), kind)
    assert (loaded.rows, loaded.added, sum(loaded.left_out.values()), len(loaded.left_out)) == (1, 1, 4, 4)


def test_a_transfers_values_arrive(client, tmp_path):
    rows = some(TRANSFER, 1)
    values = {
        "traffic_class": 1, "remote_address": bytes(10) + b"\xff\xff\xc6\x12\x07\x00", "remote_prefix_length": 120,
        "local_port": 443, "connection": 2**40, "connection_requests": 3, "status": 206, "bytes_sent": 2**41,
        "duration_us": 1_500_000, "congestion_control": b"bbr", "rtt_us": 20_000, "rttvar_us": 500, "snd_cwnd": 90,
        "rcv_space": 14_480,
    }  # fmt: skip
    for name, value in values.items():
        rows[name] = np.void(value) if name == "remote_address" else value
    ingest_records(client, write(tmp_path / "rows", rows), TRANSFER)
    names = [name.replace("bytes_sent", "bytes") for name in values]
    (row,) = client.query(f"SELECT {', '.join(names)} FROM transfers").result_rows  # noqa: S608 - ours
    expected = values | {
        "traffic_class": "client",
        "remote_address": "::ffff:c612:700",
        "congestion_control": "bbr",
    }
    assert [str(value) for value in row] == [str(value) for value in expected.values()]


def test_a_host_without_psi_was_not_observed(client, tmp_path):
    rows = some(HEALTH, 2)
    rows["cpu_stalled_us"] = [30_000_000, 0]
    rows["measured"] = [PRESSURE | STAT, STAT]
    ingest_records(client, write(tmp_path / "rows", rows), HEALTH)
    ratio = client.query(
        "SELECT sum(cpu_stalled_us) / sum(observed_us), sum(interval_us) FROM host_health"
    ).result_rows
    assert ratio == [(0.5, 120_000_000)]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), form=st.sampled_from([HOSTS, TRANSFERS]))
def test_damaged_bytes_never_become_a_row_of_another_frame(data, form):
    whole = bytearray(form.new(3).tobytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    if form.frame[at % form.length] or at % form.length in SCHEMA_VERSION:
        with pytest.raises(ValueError, match="not a ") as refused:
            form.read(whole)
        assert refused.value.args[1] == at // form.length * form.length
    else:
        assert form.read(whole).tobytes() == bytes(whole)
