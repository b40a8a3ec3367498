"""tidegate-collector as its users run it."""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.collector import commands
from tidegate_edge.schedule import Pace, next_slot
from tidegate_edge.schemas import sockets_pb2
from tidegate_edge.schemas.rows import ROW_LENGTH, new_rows, read_rows
from tidegate_edge.ship.protobuf import PROTOBUF
from tidegate_edge.ship.sink import FileSink

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
CAPTURE = Path(__file__).parents[3] / "shared" / "data" / "netlink" / "6_1_103_tcp_10_sockets.pcap"
OURS = ("--pop", "ams1", "--host", "edge1.ams1.example")

with_capture = pytest.mark.skipif(
    not CAPTURE.is_file(), reason="the captures of other kernels lie beside the repository"
)


def collector(*arguments, **settings):
    command = [COLLECTOR, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **settings)


@pytest.fixture
def connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far = listener.accept()[0]
        with near, far:
            yield near.getsockname()[1], listener.getsockname()[1]


def lines(output):
    return [json.loads(line) for line in output.splitlines()]


def of(rows, connection):
    return [row for row in rows if {row["local_port"], row["remote_port"]} == set(connection)]


def test_once_writes_rows_that_any_protobuf_reader_reads(tmp_path, connection):
    out = tmp_path / "rows.pb"
    for _ in range(2):  # the second appends
        done = collector("once", *OURS, "--out", out)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    raw = out.read_bytes()
    found = []
    for at in range(0, len(raw), ROW_LENGTH):
        message = sockets_pb2.SocketRow.FromString(raw[at + 2 : at + ROW_LENGTH])
        found += [message] if {message.local_port, message.remote_port} == set(connection) else []
    assert len(found) == 4
    assert {row.pop.rstrip(b"\0") for row in found} == {b"ams1"}
    assert {(row.remote_address[-4:], row.remote_prefix_length) for row in found} == {
        (bytes([127, 0, 0, 0]), 120)
    }


def test_standard_output_carries_the_same_rows(connection):
    done = collector("once", *OURS)
    assert done.returncode == 0
    assert len(of(read_rows(done.stdout), connection)) == 2


def test_json_is_text_for_people(connection):
    done = collector("once", "--json")
    row = of(lines(done.stdout), connection)[0]
    shown = [row[name] for name in ("state", "remote_address", "traffic_class", "schema_version", "host")]
    assert shown == ["ESTABLISHED", "127.0.0.0/24", "unknown", 2, socket.gethostname()]


def test_listeners_are_shown_when_asked_for():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        usual = {
            row["local_port"] for row in lines(collector("once", "--json").stdout) if row["state"] == "LISTEN"
        }
        every = {row["local_port"] for row in lines(collector("once", "--json", "--all-states").stdout)}
    assert usual == set()
    assert port in every


def test_a_fleet_gives_the_pop_and_the_class(tmp_path, connection):
    fleet = tmp_path / "fleet.json"
    pop = {"groups": [], "hosts": ["edge1"], "own_prefixes": ["192.0.2.0/24"]}
    fleet.write_text(json.dumps({"schema_version": 1, "origins": [], "pops": {"ams1": pop}}))
    done = collector("once", "--json", "--fleet", fleet, "--host", "edge1.ams1.example")
    assert {(row["pop"], row["traffic_class"]) for row in of(lines(done.stdout), connection)} == {
        ("ams1", "intra_pop")
    }
    unknown = collector("once", "--json", "--fleet", fleet, "--pop", "fra2")
    assert unknown.returncode == 2
    assert (
        unknown.stderr.decode()
        == f"tidegate-collector: {fleet}: no POP `fra2`\nhelp: name one with `--pop`: `ams1`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("once",), "would not say of which pop"),
        (("once", "--json", "--pop", "a" * 17), "does not fit into a row: it has 16 bytes"),
        (("once", "--json", "--netns", "no-such-namespace"), "no network namespace `no-such-namespace`"),
        (("once", "--json", "--fleet", "/no/such/fleet.json"), "/no/such/fleet.json: No such file"),
        (("once", *OURS, "--out", "/no/such/dir/rows.pb"), "/no/such/dir/rows.pb: No such file"),
        (("run", *OURS, "--interval", "5"), "`5` is not a duration"),
        (("decode", "/no/such.pcap", "--json"), "/no/such.pcap: No such file"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_2(arguments, told):
    done = collector(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()


def test_run_keeps_to_its_count_and_tells_its_counters(tmp_path, connection):
    out = tmp_path / "rows.pb"
    done = collector("run", *OURS, "--interval", "20ms", "--count", "5", "--out", out)
    assert done.returncode == 0
    polls = {int(row["observed_at_ns"]) for row in of(read_rows(out.read_bytes()), connection)}
    assert len(polls) == 5
    assert done.stderr.decode().startswith("polls 5, skipped ")


@pytest.mark.usefixtures("connection")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_run_after_a_whole_poll(number):
    command = [COLLECTOR, "run", *OURS, "--json", "--interval", "10ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running:
        first = running.stdout.readline()  # it polls
        running.send_signal(number)
        rest, errors = running.communicate(timeout=30)
    assert running.returncode == 0
    counters = json.loads(errors)
    assert counters["rows"] == len(lines(first + rest))
    assert counters["polls"] >= 1


@given(last=st.integers(0, 1000), late=st.integers(0, 5000), interval=st.integers(1, 100))
def test_the_schedule_never_drifts_and_counts_what_it_skips(last, late, interval):
    elapsed = last * interval + late
    slot = next_slot(last, elapsed, Pace(interval))
    assert slot.number > last
    assert slot.number * interval >= elapsed or (
        slot.skipped == 0 and slot.number == last + 1 and late <= interval
    )
    assert (slot.number - 1) * interval < max(elapsed, last * interval + 1)
    assert slot.skipped == slot.number - last - 1


def test_a_row_that_a_crash_cut_is_removed_before_the_next_are_appended(tmp_path):
    out = tmp_path / "rows.pb"
    out.write_bytes(new_rows(3).tobytes()[:-7])
    done = collector("once", *OURS, "--out", out)
    assert done.returncode == 0
    assert f"{out}: removed {ROW_LENGTH - 7} bytes" in done.stderr.decode()
    assert len(read_rows(out.read_bytes())) >= 2


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/sh\n" * 40, b"short"])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path, content):
    out = tmp_path / "precious"
    out.write_bytes(content)
    done = collector("once", *OURS, "--out", out)
    assert done.returncode == 2
    assert out.read_bytes() == content


@pytest.mark.usefixtures("connection")
def test_no_room_for_all_rows_of_a_poll_leaves_none_of_them(tmp_path):
    out = tmp_path / "rows.pb"
    out.write_bytes(new_rows(2).tobytes())
    limit = 2 * ROW_LENGTH + ROW_LENGTH // 2  # the kernel takes part of the write, as on a full disk

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = collector("once", *OURS, "--out", out, preexec_fn=small_files)
    assert done.returncode == 3
    assert f"{out}: File too large; cut back to the {2 * ROW_LENGTH} bytes" in done.stderr.decode()
    assert out.read_bytes() == new_rows(2).tobytes()


def test_two_writers_do_not_share_a_file(tmp_path):
    out = tmp_path / "rows.pb"
    sink = FileSink(out, PROTOBUF)
    done = collector("once", *OURS, "--out", out)
    sink.close()
    assert done.returncode == 2
    assert "another collector writes to it" in done.stderr.decode()


@pytest.mark.usefixtures("connection")
def test_a_reader_that_leaves_is_told_without_a_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [COLLECTOR, "once", *OURS], stdout=write, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (3, b"tidegate-collector: standard output: Broken pipe\n")


def pcap(order, magic, packets):
    out = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, 253)
    for seconds, fraction, data in packets:
        out += struct.pack(f"{order}IIII", seconds, fraction, len(data), len(data)) + data
    return out


def packets():
    raw, at, found = CAPTURE.read_bytes(), 24, []
    while at < len(raw):
        seconds, fraction, length, _ = struct.unpack_from("<IIII", raw, at)
        found.append((seconds, fraction, raw[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


@with_capture
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_a_capture_is_read_in_both_byte_orders_and_both_units_of_time(tmp_path, order, magic, unit):
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(order, magic, packets()))
    done = collector("decode", path, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    seconds, fraction, _ = packets()[1]
    found = lines(done.stdout)
    assert len(found) == 33
    assert found[0]["observed_at_ns"] == seconds * 10**9 + fraction * unit


@with_capture
@pytest.mark.parametrize(("kept", "of_next"), [(1, 0.5), (2, 0.1), (2, 0.9)])
def test_a_cut_capture_gives_its_whole_packets_and_names_the_place(tmp_path, kept, of_next):
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap("<", 0xA1B2C3D4, packets()[:kept]))
    whole = path.stat().st_size
    expected = collector("decode", path, "--json").stdout
    cut_at = whole + int(of_next * (16 + len(packets()[kept][2])))
    path.write_bytes(pcap("<", 0xA1B2C3D4, packets())[:cut_at])
    done = collector("decode", path, "--json")
    assert (done.returncode, done.stdout) == (2, expected)
    assert done.stderr.decode().startswith(f"tidegate-collector: {path}: byte {whole}: the last packet")
    assert len(lines(expected)) == 8 * (kept - 1)


@with_capture
def test_damage_within_a_packet_is_counted_with_its_offset(tmp_path):
    found = packets()
    seconds, fraction, data = found[1]
    hurt = bytearray(data)
    hurt[16 + 88 : 16 + 90] = b"\1\0"  # the first attribute of the first message is one byte long
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap("<", 0xA1B2C3D4, [found[0], (seconds, fraction, bytes(hurt)), *found[2:]]))
    done = collector("decode", path, "--json")
    at = 24 + 16 + len(found[0][2])
    assert done.returncode == 2
    assert f"{path}: byte {at}: damaged messages from this packet on: 1 left out" in done.stderr.decode()
    assert len(lines(done.stdout)) == 32


def test_other_files_are_no_captures(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("this is no capture, but it is long enough")
    done = collector("decode", path, "--json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "byte 0: no pcap file: it begins with `74686973`" in done.stderr.decode()
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    assert "link type 1 is not netlink's" in collector("decode", path, "--json").stderr.decode()


@with_capture
def test_a_capture_can_be_made_rows_for_others(tmp_path):
    out = tmp_path / "rows.pb"
    assert collector("decode", CAPTURE, *OURS, "--out", out).returncode == 0
    assert len(read_rows(out.read_bytes())) == 33


def test_help_shows_an_example():
    for command in (commands, *commands.commands.values()):
        assert "Example: tidegate-collector " in CliRunner().invoke(command, ["--help"]).stdout
