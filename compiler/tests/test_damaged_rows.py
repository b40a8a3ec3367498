"""Damaged files of rows by the thousand: none may crash, hang, or yield a row that its bytes do not explain.

`TIDEGATE_FUZZ_EXAMPLES=100000 pytest compiler/tests/test_damaged_rows.py` for a hundred thousand of them. Each row
carries a checksum of its other bytes. A row that is read has its checksum, or it overlaps the damage and protobuf
itself reads it; and no row before the damage is lost.
"""

import json
import os
import random
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pytest
from click.testing import CliRunner
from tidegate.cli import main
from tidegate.errors import BAD_INPUT, Failure
from tidegate.schemas import hosts_pb2, sockets_pb2, transfers_pb2
from tidegate.schemas.hosts import HOSTS
from tidegate.schemas.rows import ROW_LENGTH, SCHEMA_VERSION, new_rows
from tidegate.schemas.transfers import TRANSFERS
from tidegate.telemetry import rowfile
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

EXAMPLES = int(os.environ.get("TIDEGATE_FUZZ_EXAMPLES", "2000"))
SEED = int(os.environ.get("TIDEGATE_FUZZ_SEED", "5"))
TIME_NS = 1_790_000_000 * 10**9
MOST_ROWS = 12


def read_sockets(path):
    """Bytes of the rows of a file; the offset of what is none ends the message."""
    try:
        return b"".join(piece.tobytes() for block in rowfile.read(path) for piece in block.pieces), None
    except Failure as failure:
        return b"", int(failure.message.removeprefix(f"{path}: byte ").partition(":")[0])


def reader_of(form):
    def read(path):
        try:
            return form.read(path.read_bytes()).tobytes(), None
        except ValueError as error:
            return b"", error.args[1]

    return read


@dataclass(frozen=True)
class Kind:
    """`checksum` is the field that carries one; `table` is where the rows go."""

    length: int
    make: object
    checksum: str
    message: type
    version: int
    read: object
    table: str


KINDS = {
    "sockets": Kind(
        ROW_LENGTH, new_rows, "cookie", sockets_pb2.SocketRow, SCHEMA_VERSION, read_sockets, "socket_samples"
    ),
    "hosts": Kind(
        HOSTS.length,
        HOSTS.new,
        "run_delay_us",
        hosts_pb2.HostRow,
        HOSTS.schema_version,
        reader_of(HOSTS),
        "host_health",
    ),
    "transfers": Kind(
        TRANSFERS.length,
        TRANSFERS.new,
        "connection",
        transfers_pb2.TransferRow,
        TRANSFERS.schema_version,
        reader_of(TRANSFERS),
        "transfers",
    ),
}


def checksum(kind, raw):
    """Of a row without the eight bytes that hold it."""
    at = kind.make(0).dtype.fields[kind.checksum][1]
    return raw[at : at + 8], blake2b(raw[:at] + raw[at + 8 :], digest_size=8).digest()


def sound(kind, draw, count):
    """Rows with random values, admissible ones where a table's row must be, each with its checksum."""
    rows = kind.make(count)
    for name, (dtype, *_) in rows.dtype.fields.items():
        if name != "schema_version":
            rows[name] = np.frombuffer(draw.randbytes(count * dtype.itemsize), dtype)
    rows["finished_at_ns" if "finished_at_ns" in rows.dtype.names else "observed_at_ns"] = TIME_NS
    given = {
        "pop": b"fra2",
        "host": b"edge1",
        "congestion_control": b"bbr",
        "traffic_class": 1,
        "measured": 7,
    }
    given |= {"cpus": 8, "status": 200, "observed_us": 60_000_000, "cpu_stalled_us": 5}
    given |= {"local_prefix_length": 120, "remote_prefix_length": 56}
    for name in given.keys() & set(rows.dtype.names):
        rows[name] = given[name]
    raws = [row.tobytes() for row in rows]
    rows[kind.checksum] = [int.from_bytes(checksum(kind, raw)[1], "little") for raw in raws]
    return rows.tobytes()


def damaged(draw, data, length):  # noqa: PLR0911 - a kind of damage each
    """The file damaged in one way, and the ranges of the result that the damage touches."""
    hit, at = bytearray(data), draw.randrange(len(data))
    row = at // length * length
    match draw.randrange(7):
        case 0:  # bytes changed
            places = sorted(draw.sample(range(len(hit)), draw.randint(1, 8)))
            for place in places:
                hit[place] ^= draw.randint(1, 255)
            return bytes(hit), [(place, place + 1) for place in places]
        case 1:  # cut
            return bytes(hit[:at]), [(at, at)]
        case 2:  # bytes, or a whole row's length of them, inserted
            new = draw.randbytes(draw.choice((1, 2, 7, 64, length, 2 * length)))
            hit[at:at] = new
            return bytes(hit), [(at - 1, at + len(new) + 1)]
        case 3:  # bytes lost
            lost = draw.choice((1, 3, 64, length))
            del hit[at : at + lost]
            return bytes(hit), [(at - 1, at + 1)]
        case 4:  # a part written twice
            part = hit[at : at + draw.choice((1, 100, length, 3 * length))]
            hit[at:at] = part
            return bytes(hit), [(at - 1, at + 1), (at + len(part) - 1, at + len(part) + 1)]
        case 5:  # two rows swapped: nothing is damaged but their order
            other = draw.randrange(len(data)) // length * length
            hit[row : row + length], hit[other : other + length] = (
                data[other : other + length],
                data[row : row + length],
            )
            return bytes(hit), []
        case _:  # a length that is a lie: of a row, or of one of its fields
            new = draw.choice(
                (b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x80" * 12, b"\0", b"\0\0", b"\x7f")
            )
            place = draw.choice((row, row + draw.randrange(min(40, length))))
            hit[place : place + len(new)] = new[: len(hit) - place]
            return bytes(hit), [(place, place + len(new))]


def explained(kind, data, originals, ranges):
    """Whether each row of these bytes is one of the originals, or overlaps the damage and is protobuf still."""
    for start in range(0, len(data), kind.length):
        raw = data[start : start + kind.length]
        carried, computed = checksum(kind, raw)
        if carried == computed and raw in originals:
            continue
        if not any(begin < start + kind.length and end > start for begin, end in ranges):
            return False
        if (
            kind.message.FromString(raw[2:]).schema_version != kind.version
        ):  # behind the two bytes of its length
            return False
    return True


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_of_a_damaged_file_is_explained_and_nothing_before_the_damage_is_lost(name, tmp_path):
    kind, draw = KINDS[name], random.Random(SEED)
    path = tmp_path / "damaged.pb"
    refused = 0
    for example in range(-(-EXAMPLES // len(KINDS))):
        if example % 50 == 0:
            whole = sound(kind, draw, MOST_ROWS)
        data = whole[: draw.randint(1, MOST_ROWS) * kind.length]
        originals = {data[at : at + kind.length] for at in range(0, len(data), kind.length)}
        hit, ranges = damaged(draw, data, kind.length)
        path.write_bytes(hit)
        found, byte = kind.read(path)
        if byte is None:
            assert found == hit, (SEED, example)
        else:
            refused += 1
            first = min((max(begin, 0) for begin, _ in ranges), default=len(hit))
            assert first // kind.length * kind.length <= byte < len(hit), (SEED, example)
            assert byte % kind.length == 0, (SEED, example)
            path.write_bytes(hit[:byte])  # the way out that the message names
            found, none = kind.read(path)
            assert (found, none) == (hit[:byte], None), (SEED, example)
        assert explained(kind, found, originals, ranges), (SEED, example)
    assert refused > EXAMPLES // len(KINDS) // 4


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return f"chdb://{tmp_path_factory.mktemp('damaged') / 'store'}"


@pytest.mark.parametrize("name", KINDS)
def test_a_store_takes_all_of_a_file_or_nothing(name, store, tmp_path):
    kind, draw = KINDS[name], random.Random(SEED)
    path = tmp_path / "damaged.pb"
    refused = 0
    with open_store(store) as client:
        migrate(client)
        stored = client.command(f"SELECT count() FROM {kind.table}")  # noqa: S608
        for example in range(40):
            hit, _ = damaged(draw, sound(kind, draw, MOST_ROWS), kind.length)
            path.write_bytes(hit)
            try:
                report = ingest_file(client, path)
            except Failure:
                refused += 1
            else:
                assert report.rows + sum(report.left_out.values()) == len(hit) // kind.length
                stored += report.added
            assert client.command(f"SELECT count() FROM {kind.table}") == stored, example  # noqa: S608
    assert refused > 10


@pytest.mark.parametrize("name", KINDS)
def test_the_command_says_which_byte_and_loads_nothing(name, store, tmp_path):
    kind, draw = KINDS[name], random.Random(SEED)
    data = sound(kind, draw, MOST_ROWS)
    cases = {
        "cut.pb": (data[:-1], (MOST_ROWS - 1) * kind.length),
        "inserted.pb": (data[: 2 * kind.length] + b"x" + data[2 * kind.length :], 2 * kind.length),
        "length.pb": (data[: 5 * kind.length] + b"\xff" * 10 + data[5 * kind.length + 10 :], 5 * kind.length),
    }
    for file, (content, byte) in cases.items():
        path = tmp_path / file
        path.write_bytes(content)
        ran = CliRunner().invoke(main, ["--dsn", store, "ingest", "--json", str(path)])
        assert (ran.exit_code, ran.stdout) == (BAD_INPUT, "")
        assert f"{path}: byte {byte}: " in ran.stderr
        assert f"head -c {byte} {path}" in ran.stderr
    path = tmp_path / "whole.pb"
    path.write_bytes(data)
    ran = CliRunner().invoke(main, ["--dsn", store, "ingest", "--json", str(path)])
    assert (ran.exit_code, json.loads(ran.stdout)[0]["added"]) == (0, MOST_ROWS)
