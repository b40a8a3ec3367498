"""Loading rows: every value arrives, once, and nothing of a damaged file does."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidegate.errors import BAD_INPUT, Failure
from tidegate.schemas.rows import ROW, ROW_LENGTH, SCHEMA_VERSION, new_rows
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

NOON = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()) * 10**9
ENUM = ["unknown", "client", "pop_to_pop", "intra_pop", "origin"]


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


@pytest.fixture(autouse=True)
def empty(client):
    client.command("DROP TABLE socket_samples SYNC")
    client.command("DROP TABLE ingested_blocks SYNC")
    client.command("TRUNCATE TABLE schema_migrations")
    migrate(client)


def some_rows(count, seed=0):
    rows = new_rows(count)
    rows["observed_at_ns"] = NOON + np.arange(count)
    rows["pop"], rows["host"], rows["congestion_control"] = b"fra2", b"fra2-edge1", b"cubic"
    rows["cookie"] = np.arange(count) + seed * 2**32
    rows["remote_address"] = bytes(10) + b"\xff\xff\xc6\x12\x07\x00"
    rows["remote_prefix_length"] = 120
    return rows


def write(path, rows):
    path.write_bytes(rows.tobytes())
    return path


def count(client):
    return client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows[0]


# --- every value arrives ----------------------------------------------------------------------------------

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
BOUNDED = {
    "schema_version": st.just(SCHEMA_VERSION),
    "observed_at_ns": st.integers(1_420_070_400 * 10**9, NOON),
    "pop": st.text(ALPHABET, min_size=1, max_size=16).map(str.encode),
    "host": st.text(ALPHABET, min_size=1, max_size=32).map(str.encode),
    "congestion_control": st.text(ALPHABET, max_size=16).map(str.encode),
    "traffic_class": st.integers(0, 4),
    "local_prefix_length": st.integers(0, 128),
    "remote_prefix_length": st.integers(0, 128),
}


def values_of(name):
    if name in BOUNDED:
        return BOUNDED[name]
    size = ROW[name].itemsize
    return st.binary(min_size=size, max_size=size) if ROW[name].kind == "V" else st.integers(0, 256**size - 1)


@st.composite
def rows_of_any_value(draw):
    drawn = draw(st.lists(st.fixed_dictionaries({name: values_of(name) for name in ROW.names}), max_size=8))
    rows = new_rows(len(drawn))
    for index, row in enumerate(drawn):
        for name, value in row.items():
            rows[name][index] = value
    return rows


def as_stored(row):
    values = [row[name] for name in ROW.names]
    out = []
    for name, value in zip(ROW.names, values, strict=True):
        if name == "traffic_class":
            out.append(ENUM[value])
        elif ROW[name].kind == "S":
            out.append(value.decode())
        elif ROW[name].kind == "V":
            out.append(value.tobytes().hex().upper())
        else:
            out.append(int(value))
    return tuple(out)


def expression(name):
    if name == "observed_at_ns":
        return "toUnixTimestamp64Nano(observed_at)"
    return f"hex({name})" if ROW[name].kind == "V" else name


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows_of_any_value())
def test_what_is_stored_is_what_was_written(client, tmp_path, rows):
    client.command("TRUNCATE TABLE socket_samples")
    client.command("TRUNCATE TABLE ingested_blocks")
    report = ingest_file(client, write(tmp_path / "any.pb", rows))
    assert (report.rows, report.left_out) == (len(rows), {})
    columns = ", ".join(map(expression, ROW.names))
    stored = client.query(f"SELECT {columns} FROM socket_samples").result_rows  # noqa: S608 - names of our schema
    assert sorted(stored) == sorted(as_stored(row) for row in rows)


# --- once -------------------------------------------------------------------------------------------------


def test_a_file_loaded_twice_adds_nothing_under_any_name(client, tmp_path):
    first = ingest_file(client, write(tmp_path / "a.pb", some_rows(5000)))
    again = ingest_file(client, write(tmp_path / "b.pb", some_rows(5000)))
    assert (first.rows, first.added, first.duplicate) == (5000, 5000, False)
    assert (again.rows, again.added, again.duplicate) == (5000, 0, True)
    assert count(client) == (5000, 5000)


def test_another_file_is_no_duplicate(client, tmp_path):
    ingest_file(client, write(tmp_path / "a.pb", some_rows(10)))
    assert ingest_file(client, write(tmp_path / "b.pb", some_rows(10, seed=1))).added == 10
    assert count(client) == (20, 20)


def test_an_insert_that_was_not_recorded_is_not_repeated(client, tmp_path):
    path = write(tmp_path / "a.pb", some_rows(10))
    ingest_file(client, path)
    client.command("TRUNCATE TABLE ingested_blocks")  # the crash came before the ledger's row
    ingest_file(client, path)
    assert count(client) == (10, 10)


KILLED = """
import os, signal, sys
from pathlib import Path
from tidegate.telemetry import ingest, rowfile
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

rowfile.BLOCK_ROWS = 1000

def die_after_two_blocks(done, total):
    print(done, total, flush=True)
    if sys.argv[3] == "killed" and done == 2000:
        os.kill(os.getpid(), signal.SIGKILL)

with open_store(sys.argv[1]) as client:
    migrate(client)
    noted = client.command("SELECT sum(added) FROM ingested_blocks")
    report = ingest.ingest_file(client, Path(sys.argv[2]), on_progress=die_after_two_blocks)
    stored = client.query("SELECT count(), uniqExact(cookie) FROM socket_samples").result_rows
    print(report.rows, report.added, noted, stored)
"""


def test_a_load_that_was_killed_is_finished_by_the_next(tmp_path):
    path = write(tmp_path / "a.pb", some_rows(3500))

    def run(fate):
        command = [sys.executable, "-c", KILLED, f"chdb://{tmp_path / 'store'}", str(path), fate]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)

    killed = run("killed")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.splitlines()[-1] == "2000 3500"
    finished = run("left alone")
    rows, added, noted, stored = finished.stdout.splitlines()[-1].split(maxsplit=3)
    assert (rows, stored) == ("3500", "[(3500, 3500)]"), finished.stderr
    # The other lane may have been further than the two blocks.
    assert noted in {"2000", "2500", "3000", "3500"}
    assert int(added) == 3500 - int(noted)


def test_progress_ends_with_all_rows(client, tmp_path):
    seen = []
    ingest_file(client, write(tmp_path / "a.pb", some_rows(7)), on_progress=lambda *step: seen.append(step))
    assert seen == [(0, 7), (7, 7)]


# --- damage -----------------------------------------------------------------------------------------------


def failure_of(client, path):
    with pytest.raises(Failure) as caught:
        ingest_file(client, path)
    assert caught.value.exit_code == BAD_INPUT
    assert caught.value.message.startswith(f"{path}: ")
    assert count(client) == (0, 0)
    return caught.value


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(1, 5000 * ROW_LENGTH - 1).filter(lambda length: length % ROW_LENGTH))
def test_a_cut_file_is_refused_at_its_last_row(client, tmp_path, length):
    path = tmp_path / "cut.pb"
    path.write_bytes(some_rows(5000).tobytes()[:length])
    whole = length // ROW_LENGTH * ROW_LENGTH
    assert (
        f"byte {whole}: the last row is cut: {length - whole} of {ROW_LENGTH} bytes"
        in failure_of(client, path).message
    )


@pytest.mark.parametrize("row", [0, 1, 2047, 2048, 4999])
def test_a_flipped_byte_of_the_frame_is_refused_at_its_row(client, tmp_path, row):
    data = bytearray(some_rows(5000).tobytes())
    data[row * ROW_LENGTH] ^= 0x40
    path = tmp_path / "flipped.pb"
    path.write_bytes(data)
    told = f"byte {row * ROW_LENGTH}: not a row of schema version {SCHEMA_VERSION}"
    assert told in failure_of(client, path).message


def test_a_row_of_another_schema_version_is_refused(client, tmp_path):
    rows = some_rows(3)
    rows["schema_version"][1] = SCHEMA_VERSION + 1
    message = failure_of(client, write(tmp_path / "new.pb", rows)).message
    told = f"not a row of schema version {SCHEMA_VERSION} (it reads {SCHEMA_VERSION + 1})"
    assert f"byte {ROW_LENGTH}: {told}" in message


def test_what_is_no_telemetry_is_refused_with_what_is(client, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("pop,host\n" * 100)
    failure = failure_of(client, path)
    assert "byte 0: not a row" in failure.message
    assert "M-Lab" in failure.help


def test_what_cannot_be_read_is_refused(client, tmp_path):
    assert "No such file" in failure_of(client, tmp_path / "missing.pb").message
    assert "not a regular file" in failure_of(client, tmp_path).message
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in failure_of(client, tmp_path / "pipe").message


def test_rows_of_too_many_days_are_refused(client, tmp_path):
    rows = some_rows(200)
    rows["observed_at_ns"] = NOON - np.arange(200) * 86_400 * 10**9
    assert "200 different days" in failure_of(client, write(tmp_path / "days.pb", rows)).message


def test_an_empty_file_holds_nothing(client, tmp_path):
    path = tmp_path / "empty.pb"
    path.touch()
    report = ingest_file(client, path)
    assert (report.rows, report.added, report.duplicate) == (0, 0, False)


# --- what cannot be true ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("observed_at_ns", 0, "time before 2015 or in the future"),
        pytest.param(
            "observed_at_ns",
            time.time_ns() + 2 * 86_400 * 10**9,
            "time before 2015 or in the future",
            id="in two days",
        ),
        ("observed_at_ns", 2**64 - 1, "time before 2015 or in the future"),
        ("pop", b"", "POP is not a name"),
        ("pop", b"fr a2", "POP is not a name"),
        ("pop", b"fra\0x", "POP is not a name"),
        ("host", b"a\xff", "host is not a name"),
        ("congestion_control", b"'; DROP TABLE", "congestion control is not a name"),
        ("traffic_class", 5, "unknown traffic class"),
        ("traffic_class", 2**32 - 1, "unknown traffic class"),
        ("remote_prefix_length", 129, "prefix longer than its address"),
        ("local_prefix_length", 2**32 - 1, "prefix longer than its address"),
    ],
)
def test_a_row_that_cannot_be_true_is_left_out_and_counted(client, tmp_path, field, value, reason):
    rows = some_rows(5)
    rows[field][2] = value
    report = ingest_file(client, write(tmp_path / "strange.pb", rows))
    assert (report.rows, report.added, report.left_out) == (4, 4, {reason: 1})
    assert client.query("SELECT groupArray(cookie) FROM socket_samples").result_rows == [([0, 1, 3, 4],)]
