"""M-Lab's archives become rows; a damaged or hostile one becomes an error that names the place."""

import base64
import gzip
import io
import json
import struct
import tarfile
from ipaddress import IPv6Address
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidegate.errors import BAD_INPUT, Failure
from tidegate.telemetry import mlab
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.mlab_record import unix_ns
from tidegate.telemetry.store import open_store

ARCHIVES = Path(__file__).parents[2] / ".." / "shared" / "data" / "mlab"
REAL_NDT7 = ARCHIVES / "20200318T003853Z-ndt7-mlab3-syd03-ndt.tgz"
REAL_TCPINFO = ARCHIVES / "20190516T013026Z-tcpinfo-mlab4-arn02-ndt.tgz"
real = pytest.mark.skipif(not ARCHIVES.is_dir(), reason=f"no captures in {ARCHIVES}")


@pytest.fixture(scope="module")
def client():
    with open_store("chdb://memory") as store:
        migrate(store)
        yield store


# --- real archives --------------------------------------------------------------------------------------------


@real
def test_every_snapshot_of_a_real_ndt7_archive_is_loaded(client):
    report = ingest_file(client, REAL_NDT7)
    assert (report.format, report.rows, report.added, report.left_out) == ("ndt7", 3875, 3875, {})
    assert ingest_file(client, REAL_NDT7).duplicate
    with tarfile.open(REAL_NDT7) as archive:
        tests = [json.loads(gzip.decompress(archive.extractfile(member).read())) for member in archive]
    assert len({test["ClientIP"] for test in tests}) == 57
    snapshots = [
        snapshot
        for test in tests
        for part in ("Download", "Upload")
        for snapshot in test.get(part, {}).get("ServerMeasurements", [])
    ]
    expected = sorted(
        (
            s["TCPInfo"]["DeliveryRate"],
            s["TCPInfo"]["RTT"],
            s["TCPInfo"]["BytesAcked"],
            s["BBRInfo"]["MaxBandwidth"],
        )
        for s in snapshots
    )
    stored = client.query(
        "SELECT delivery_rate, rtt_us, bytes_acked, bbr_bw FROM socket_samples WHERE pop = 'syd03' ORDER BY ALL"
    ).result_rows
    assert stored == expected
    (found,) = client.query(
        "SELECT groupUniqArray(host), groupUniqArray(toString(traffic_class)), min(observed_at) >= '2020-03-18',"
        " max(observed_at) < '2020-03-19', uniqExact(cookie), max(max_pacing_rate)"
        " FROM socket_samples WHERE pop = 'syd03'"
    ).result_rows
    assert found == (["mlab3"], ["client"], 1, 1, len(tests), 2**64 - 1)


@real
def test_every_record_of_a_real_tcpinfo_archive_is_loaded_or_counted(client):
    with tarfile.open(REAL_TCPINFO) as archive:
        unpack = zstandard.ZstdDecompressor()
        connections = [unpack.stream_reader(archive.extractfile(m)).read() for m in archive]
    records = [json.loads(line) for connection in connections for line in connection.splitlines()]
    assert (len(connections), len(records)) == (364, 10_791)  # two connections are empty files
    report = ingest_file(client, REAL_TCPINFO)
    assert (report.format, report.rows, report.left_out) == ("tcpinfo", 10_429, {"metadata record": 362})
    # A second witness: the kernel's structures by struct, where the reader uses numpy.
    expected = []
    for record in records:
        if "RawIDM" in record:
            message, info = base64.b64decode(record["RawIDM"]), base64.b64decode(record["Attributes"][2])
            ports, cookie = struct.unpack_from(">HH", message, 4), struct.unpack_from("<Q", message, 44)
            rtt, cwnd = struct.unpack_from("<I", info, 68), struct.unpack_from("<I", info, 80)
            tail = struct.unpack_from("<IIIIQ", info, 144)  # notsent, min_rtt, data segments in and out, rate
            expected.append((*ports, *cookie, message[1], *rtt, *cwnd, *tail, info[6] & 15, info[6] >> 4))
    stored = client.query(
        "SELECT local_port, remote_port, cookie, state, rtt_us, snd_cwnd, notsent_bytes, min_rtt_us, data_segs_in,"
        " data_segs_out, delivery_rate, send_wscale, receive_wscale FROM socket_samples WHERE pop = 'arn02'"
    ).result_rows
    assert sorted(stored) == sorted(expected)
    prefixes = client.query(
        "SELECT DISTINCT remote_address, remote_prefix_length, congestion_control FROM socket_samples"
        " WHERE pop = 'arn02' AND host = 'mlab4'"
    ).result_rows
    for address, length, algorithm in prefixes:
        assert length == (120 if address.ipv4_mapped else 56)
        assert int(address) % 2 ** (128 - length) == 0
        assert algorithm == "cubic"


# --- made archives --------------------------------------------------------------------------------------------

NDT7 = "20200318T003853Z-ndt7-mlab3-syd03-ndt.tgz"
TCPINFO = "20190516T013026.123456Z-tcpinfo-mlab4-arn02-ndt.tgz"
SNAPSHOT = {"TCPInfo": {"RTT": 20_000, "ElapsedTime": 5, "WScale": 0xA7, "MaxPacingRate": -1}, "BBRInfo": {}}
TEST = {
    "ServerIP": "192.0.2.1",
    "ServerPort": 443,
    "ClientIP": "2001:db8:1:2ff::7",
    "ClientPort": 50_000,
    "Download": {
        "UUID": "ndt-x_1583603744_00000000000058E8",
        "StartTime": "2020-03-18T00:00:01.5Z",
        "ServerMeasurements": [SNAPSHOT],
    },
}


def archive(folder, name, members):
    """A .tgz of (name, bytes) members."""
    path = folder / name
    with tarfile.open(path, "w:gz") as tar:
        for member, data in members:
            header = tarfile.TarInfo(member)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    return path


def ndt7(folder, document):
    return archive(folder, NDT7, [("a.json.gz", gzip.compress(json.dumps(document).encode()))])


def changed(**parts):
    return TEST | {"Download": TEST["Download"] | parts}


def rows(path):
    blocks = list(mlab.read(path))
    return np.concatenate([block.rows for block in blocks]) if blocks else []


def failure_of(path):
    with pytest.raises(Failure) as caught:
        list(mlab.read(path))
    assert caught.value.exit_code == BAD_INPUT
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message


def test_a_snapshot_is_cut_to_its_prefix_and_carries_its_time(tmp_path):
    (row,) = rows(ndt7(tmp_path, TEST))
    assert row["observed_at_ns"] == unix_ns("2020-03-18T00:00:01.500005Z")
    assert str(IPv6Address(row["remote_address"].tobytes())) == "2001:db8:1:200::"
    assert IPv6Address(row["local_address"].tobytes()).ipv4_mapped.exploded == "192.0.2.0"
    assert (row["remote_prefix_length"], row["local_prefix_length"]) == (56, 120)
    assert (row["remote_port"], row["local_port"], row["cookie"]) == (50_000, 443, 0x58E8)
    assert (row["send_wscale"], row["receive_wscale"]) == (7, 10)
    assert (row["pop"], row["host"], row["congestion_control"]) == (b"syd03", b"mlab3", b"")


@pytest.mark.parametrize("field", ["RTT", "DeliveryRate", "WScale", "ElapsedTime"])
@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_value_that_no_kernel_reports_leaves_its_snapshot_out(tmp_path, field, value):
    strange = {"TCPInfo": SNAPSHOT["TCPInfo"] | {field: value}, "BBRInfo": {}}
    (block,) = mlab.read(ndt7(tmp_path, changed(ServerMeasurements=[SNAPSHOT, strange, {"BBRInfo": {}}])))
    assert len(block.rows) == 1
    assert block.left_out == {"value out of range": 1, "snapshot without TCP_INFO": 1}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"Download": {}, "Upload": {}},
        changed(StartTime="yesterday"),
        changed(StartTime="2020-02-30T00:00:00Z"),
        changed(StartTime="0001-01-01T00:00:00Z"),
        changed(StartTime="9999-12-31T23:59:59Z"),
        changed(UUID="no cookie"),
        changed(UUID="ndt-x_1583603744_-5"),
        changed(UUID="ndt-x_1583603744_10000000000000000"),
        changed(ServerMeasurements=[{"TCPInfo": {"ElapsedTime": (2**64 - 1) // 1000}}]),
        changed(ServerMeasurements=7),
        changed(ServerMeasurements=[7]),
        changed(ServerMeasurements=[{"TCPInfo": {"RTT": "fast"}}]),
        changed(ServerMeasurements=[{"TCPInfo": {"RTT": 1.5}}]),
        TEST | {"ClientIP": "192.0.2.999"},
        TEST | {"ClientPort": 65_536},
    ],
)
def test_a_document_that_is_no_test_is_refused_by_its_name(tmp_path, document):
    assert "a.json.gz: not ndt7 data" in failure_of(ndt7(tmp_path, document))


def test_json_nested_without_end_is_refused(tmp_path):
    path = archive(tmp_path, NDT7, [("deep.json", b"[" * 10**6)])
    assert "deep.json: not ndt7 data" in failure_of(path)


RECORD = {
    "Timestamp": "2019-05-16T00:00:00.000000007Z",
    "RawIDM": base64.b64encode(bytes(72)).decode(),
    "Attributes": [None, None, base64.b64encode(bytes(8)).decode()],
}


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"7",
        b'{"RawIDM": "AA==", "Attributes": [null, null, "AA=="], "Timestamp": "2019-05-16T00:00:00Z"}',
        b'{"RawIDM": 7, "Attributes": [null, null, "AA=="], "Timestamp": "2019-05-16T00:00:00Z"}',
        b'{"Attributes": [null, null, "AA=="]}',
        json.dumps(RECORD | {"Timestamp": "0001-01-01T00:00:00Z"}).encode(),
    ],
)
def test_a_line_that_is_no_record_is_refused_by_its_number(tmp_path, line):
    data = zstandard.compress(b'{"Metadata": {}}\n' + line)
    assert "c.jsonl.zst: not tcpinfo data: line 2: " in failure_of(
        archive(tmp_path, TCPINFO, [("c.jsonl.zst", data)])
    )


def test_an_old_kernels_short_tcp_info_is_filled_with_zeros(tmp_path):
    message = (
        bytes([2, 1])
        + bytes(2)
        + b"\x01\xbb\xc3\x50"
        + b"\xc0\x00\x02\x01"
        + bytes(12)
        + b"\xc6\x12\x07\x63"
        + bytes(44)
    )
    info = struct.pack("<8B", 1, 0, 0, 0, 0, 0, 0xA7, 1) + bytes(60) + struct.pack("<I", 20_000)

    record = RECORD | {
        "RawIDM": base64.b64encode(message).decode(),
        "Attributes": [None, None, base64.b64encode(info).decode()],
    }
    data = zstandard.compress(json.dumps(record).encode())
    (row,) = rows(archive(tmp_path, TCPINFO, [("c.jsonl.zst", data)]))
    assert (row["local_port"], row["remote_port"], row["rtt_us"], row["snd_wnd"]) == (443, 50_000, 20_000, 0)
    assert (row["send_wscale"], row["receive_wscale"], row["delivery_rate_app_limited"]) == (7, 10, 1)
    assert IPv6Address(row["remote_address"].tobytes()).ipv4_mapped.exploded == "198.18.7.0"
    assert row["observed_at_ns"] == 1_557_964_800_000_000_007


def test_records_without_tcp_info_are_counted(tmp_path):
    data = zstandard.compress(b'{"Metadata": {}}\n{"RawIDM": "", "Attributes": [null, "AA=="]}\n')
    (block,) = mlab.read(
        archive(tmp_path, TCPINFO, [("c.jsonl.zst", data), ("empty.jsonl.zst", zstandard.compress(b""))])
    )
    assert block.left_out == {"metadata record": 1, "record without TCP_INFO": 1}


@pytest.mark.parametrize(
    "name", ["ndt.tgz", "20200318T003853Z-ndt7-mlab3-syd03-ndt.tgz.gz", "x-ndt7-mlab3-syd03-ndt.tgz"]
)
def test_an_archive_under_another_name_is_refused_because_only_its_name_tells_the_site(
    client, tmp_path, name
):
    path = archive(tmp_path, name, [])
    with pytest.raises(Failure, match="not that of an M-Lab archive"):
        ingest_file(client, path)


def test_links_in_an_archive_are_not_followed(tmp_path):
    path = tmp_path / NDT7
    with tarfile.open(path, "w:gz") as tar:
        for kind, name in (
            (tarfile.SYMTYPE, "soft.json"),
            (tarfile.DIRTYPE, "folder.json"),
            (tarfile.FIFOTYPE, "p.json"),
        ):
            header = tarfile.TarInfo(name)
            header.type, header.linkname = kind, "/etc/passwd"
            tar.addfile(header)
    assert len(rows(path)) == 0


# --- damage and bombs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = ndt7(tmp_path_factory.mktemp("sound"), TEST)
    return path.read_bytes(), rows(path).tobytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_is_an_error_or_harmless(tmp_path, sound, data):
    whole, expected = sound
    broken = bytearray(whole)
    broken[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / NDT7
    path.write_bytes(broken)
    try:
        found = rows(path).tobytes()
    except Failure:
        return
    assert found == expected  # a bit that says nothing, such as gzip's time


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_archive_is_an_error_that_names_the_byte(tmp_path, sound, data):
    whole, _ = sound
    path = tmp_path / NDT7
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert "of the archive" in failure_of(path)


def test_a_cut_member_is_an_error(tmp_path):
    half = zstandard.compress(np.random.default_rng(1).bytes(10_000))[:5000]
    assert "a zstd frame is cut" in failure_of(archive(tmp_path, TCPINFO, [("c.jsonl.zst", half)]))
    half = gzip.compress(json.dumps(TEST).encode())[:-9]
    assert "at a.json.gz" in failure_of(archive(tmp_path, NDT7, [("a.json.gz", half)]))


@pytest.mark.parametrize(
    ("name", "member", "pack"),
    [(NDT7, "b.json.gz", gzip.compress), (TCPINFO, "b.jsonl.zst", zstandard.compress)],
)
def test_a_member_that_unpacks_without_end_is_refused(tmp_path, name, member, pack):
    bomb = pack(bytes(mlab.MAX_MEMBER_BYTES + 1))
    assert "a member of more than 33554432 bytes" in failure_of(archive(tmp_path, name, [(member, bomb)]))


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(mlab, "MAX_ARCHIVE_BYTES", 2**20)
    path = archive(tmp_path, NDT7, [("ignored", bytes(2**21))])
    assert "unpacks to more than 1048576 bytes" in failure_of(path)
