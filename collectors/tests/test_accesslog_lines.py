"""Whatever the log holds and however it grows: whole lines once each, values in their bounds, memory bounded."""

import json
import resource
import subprocess
import sys
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_edge.accesslog.line import NoTransfer, parse
from tidegate_edge.accesslog.rows import make_rows
from tidegate_edge.accesslog.tail import MAX_LINE, Tail
from tidegate_edge.schemas.transfers import TRANSFERS
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.rows import Origin

ENTRY = {
    "format": "tidegate-1", "msec": "1790000000.123", "remote_addr": "192.0.2.77", "remote_port": "50000",
    "server_addr": "198.51.100.1", "server_port": "443", "connection": "7", "connection_requests": "1",
    "status": "200", "bytes_sent": "1000000", "request_time": "0.250", "tcpinfo_rtt": "20000",
    "tcpinfo_rttvar": "500", "tcpinfo_snd_cwnd": "90", "tcpinfo_rcv_space": "14480",
}  # fmt: skip
COLLECTOR = Path(sys.executable).with_name("tidegate-collector")


def line(**change):
    return json.dumps(ENTRY | change).encode()


@given(
    st.binary(max_size=300)
    | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_what_is_no_line_is_refused(data):
    with pytest.raises(NoTransfer):
        parse(data)


@settings(max_examples=300)
@given(st.sampled_from(sorted(ENTRY)), st.text(max_size=30) | st.integers() | st.none() | st.floats())
def test_a_line_with_any_value_is_refused_or_fits_into_a_row(name, value):
    try:
        transfer = parse(line(**{name: value}))
    except NoTransfer:
        return
    (row,) = make_rows([transfer], [""], Origin("ams1", "h"))
    for field in ("bytes_sent", "duration_us", "status", "local_port", "connection", "rtt_us", "snd_cwnd"):
        assert row[field] == getattr(transfer, field)


@given(st.ip_addresses(), st.booleans())
def test_an_address_is_cut_at_the_source_unless_told_otherwise(address, full):
    origin = Origin("ams1", "h", FULL) if full else Origin("ams1", "h")
    (row,) = make_rows([parse(line(remote_addr=str(address)))], ["bbr"], origin)
    mapped = IPv6Address(f"::ffff:{address}") if isinstance(address, IPv4Address) else address
    kept = int(row["remote_prefix_length"])
    is_ipv4 = mapped.ipv4_mapped is not None
    assert kept == (128 if full else 120 if is_ipv4 else 56)
    assert int.from_bytes(row["remote_address"].item(), "big") == int(mapped) >> (128 - kept) << (128 - kept)


def test_a_connection_that_the_server_could_not_ask_about_has_no_tcp_info():
    transfer = parse(line(tcpinfo_rtt="", tcpinfo_snd_cwnd=""))
    assert (transfer.rtt_us, transfer.snd_cwnd, transfer.rcv_space) == (0, 0, 14_480)


lines = st.lists(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")) | st.just(b"x" * (MAX_LINE + 1))
)


@settings(max_examples=200, deadline=None)
@given(lines, st.data())
def test_however_the_file_grows_each_whole_line_comes_once(tmp_path_factory, written, data):
    path = tmp_path_factory.mktemp("tail") / "log"
    path.touch()
    whole = b"".join(each + b"\n" for each in written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    tail = Tail(path)
    got, too_long = [], 0
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with path.open("ab") as log:
            log.write(whole[begin:end])
        while (read := tail.read()).progress:
            got += read.whole
            too_long += read.too_long
    tail.close()
    assert got == [each for each in written if len(each) <= MAX_LINE]
    assert too_long == sum(len(each) > MAX_LINE for each in written)


@pytest.mark.parametrize("before", [1, 50])
def test_nothing_is_taken_of_a_file_that_was_truncated_and_has_grown_beyond_what_was_read(tmp_path, before):
    path = tmp_path / "log"
    path.write_bytes(b"".join(line(connection=str(each)) + b"\n" for each in range(before)))
    tail = Tail(path)
    assert len(tail.read().whole) == before
    left = tail.position
    path.write_bytes(b"".join(line(connection=f"9{each}") + b"\n" for each in range(2 * before + 1)))
    assert not tail.read().progress
    assert tail.position == left
    assert tail.was_cut()
    tail.close()


def test_where_the_rows_cannot_be_written_the_position_stays(tmp_path):
    """The disk is full for the second run; the third delivers what it could not."""
    log, out = tmp_path / "log", tmp_path / "rows.pb"

    def read(**limits):
        argv = [
            COLLECTOR,
            "accesslog",
            log,
            "--state-dir",
            tmp_path / "state",
            "--out",
            out,
        ]
        names = ("--pop", "ams1", "--host", "h")
        return subprocess.run(
            [*argv, *names], capture_output=True, text=True, check=False, timeout=60, **limits
        )

    def full():
        size = out.stat().st_size + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    log.write_bytes(line() + b"\n")
    assert read().returncode == 0
    with log.open("ab") as more:
        more.writelines(line(connection=str(number)) + b"\n" for number in (8, 9))
    failed = read(preexec_fn=full)
    assert failed.returncode == 3
    assert TRANSFERS.read(out.read_bytes())["connection"].tolist() == [7]
    assert read().returncode == 0
    assert TRANSFERS.read(out.read_bytes())["connection"].tolist() == [7, 8, 9]


def test_a_damaged_state_is_said_and_left_as_it_is(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(line() + b"\n")
    argv = [COLLECTOR, "accesslog", log, "--state-dir", tmp_path / "state", "--json"]
    assert subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0
    (state,) = (tmp_path / "state").glob("*.json")
    assert state.stat().st_mode & 0o777 == 0o600
    state.write_bytes(b'{"schema_version": 1, "files": [{"inode": -1}]}')
    refused = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "damaged" in refused.stderr
    assert state.read_bytes() == b'{"schema_version": 1, "files": [{"inode": -1}]}'
