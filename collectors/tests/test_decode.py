"""Netlink bytes to rows: every kernel's structures, and bytes that no kernel sends."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroute2.netlink.diag import inet_diag_msg
from tidegate_edge.sockets import kernel
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.capture import read_capture
from tidegate_edge.sockets.rows import Origin, make_rows

CAPTURES = Path(__file__).parents[3] / "shared" / "data" / "netlink"
NOW = 1_790_000_000_000_000_001
ORIGIN = Origin("ams1", "edge1.ams1.example", FULL)
LOCAL, REMOTE = bytes([192, 0, 2, 7]), bytes([203, 0, 113, 99])


def attribute(kind, payload):
    return struct.pack("<HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def message(
    *attributes, kind=20, flags=2, family=2, state=1, cookie=5, local=LOCAL, remote=REMOTE, sequence=77
):
    body = struct.pack("<BBBB", family, state, 0, 0) + struct.pack(">HH", 443, 50_001)
    body += local.ljust(16, b"\0") + remote.ljust(16, b"\0") + struct.pack("<IQ", 0, cookie)
    body += struct.pack("<IIIII", 0, 11, 22, 33, 44) + b"".join(attributes)
    return struct.pack("<IHHII", 16 + len(body), kind, flags, sequence, 0) + body


def decode(*datagrams, origin=ORIGIN, known=None):
    """Datagrams as a collector has them in its buffer: each begins at a multiple of four."""
    data, places = b"", []
    for datagram in datagrams:
        places.append((len(data), len(data) + len(datagram)))
        data += datagram + bytes(-len(datagram) % 4)
    return make_rows(np.frombuffer(data, "<u4"), places, origin, NOW, known=known)


def info(length):
    """A tcp_info in which every byte differs from its neighbours and no byte is zero."""
    return bytes(1 + n * 7 % 251 for n in range(length))


def expected_info(payload):
    """The fields that `payload` is long enough for, read one by one."""
    fields = {}
    for name, (fmt, at) in kernel.TCP_INFO_FIELDS.items():
        size = int(fmt[-1])
        whole = at + size <= len(payload)
        fields[name] = int.from_bytes(payload[at : at + size], "little") if whole else 0
    return fields


def test_every_row_says_whose_it_is_and_when():
    row = decode(message(attribute(2, info(280)))).rows[0]
    assert (row["schema_version"], row["observed_at_ns"]) == (2, NOW)
    assert (row["pop"], row["host"]) == (b"ams1", b"edge1.ams1.example")


def test_the_message_itself():
    row = decode(message(state=8, cookie=0x0102030405060708)).rows[0]
    names = ("state", "local_port", "remote_port", "receive_queue", "send_queue", "uid", "inode", "cookie")
    assert [row[name] for name in names] == [8, 443, 50_001, 11, 22, 33, 44, 0x0102030405060708]


@pytest.mark.parametrize("length", [104, 136, 168, 192, 200, 224, 232, 248, 280, 400])
def test_a_tcp_info_is_read_as_far_as_it_goes(length):
    row = decode(message(attribute(2, info(length)))).rows[0]
    assert {name: row[name] for name in kernel.TCP_INFO_FIELDS} == expected_info(info(length))


def test_a_tcp_info_that_ends_within_a_field_does_not_give_half_of_it():
    row = decode(message(attribute(2, info(164)))).rows[0]
    assert row["delivery_rate"] == 0
    assert row["data_segs_out"] == expected_info(info(164))["data_segs_out"] != 0


def test_bit_fields_keep_their_sides():
    payload = bytearray(280)
    payload[6], payload[7] = 0xA7, 0xFE
    row = decode(message(attribute(2, bytes(payload)))).rows[0]
    assert (row["send_wscale"], row["receive_wscale"], row["delivery_rate_app_limited"]) == (7, 10, 0)
    payload[7] = 0x01
    assert decode(message(attribute(2, bytes(payload)))).rows[0]["delivery_rate_app_limited"] == 1


def test_bbr_has_a_64_bit_bandwidth_and_others_have_none():
    bbr = attribute(kernel.INET_DIAG_BBRINFO, struct.pack("<IIIII", 7, 3, 1500, 739, 512))
    plain, with_bbr = message(attribute(4, b"cubic\0")), message(attribute(4, b"bbr\0"), bbr)
    rows = {row["congestion_control"]: row for row in decode(plain + with_bbr).rows}
    assert rows[b"bbr"]["bbr_bw"] == 3 << 32 | 7
    assert [rows[b"bbr"][f"bbr_{n}"] for n in ("min_rtt_us", "pacing_gain", "cwnd_gain")] == [1500, 739, 512]
    assert [rows[b"cubic"][f"bbr_{n}"] for n in ("bw", "min_rtt_us", "pacing_gain", "cwnd_gain")] == [0] * 4


def test_algorithms_of_one_length_are_told_apart():
    names = [b"cubic", b"vegas", b"cubic", b"illinois", b"westwood"]
    data = b"".join(
        message(attribute(2, info(232)), attribute(4, name + b"\0"), cookie=n) for n, name in enumerate(names)
    )
    rows = decode(data).rows
    assert sorted((int(row["cookie"]), row["congestion_control"]) for row in rows) == list(enumerate(names))


def test_equal_lengths_with_attributes_in_another_order_are_both_read():
    mark, tcp = attribute(15, b"\1\2\3\4"), attribute(2, info(232))
    rows = decode(message(mark, tcp) + message(tcp, mark)).rows
    assert [row["snd_wnd"] for row in rows] == [expected_info(info(232))["snd_wnd"]] * 2


def test_ipv4_is_one_address_on_an_ipv4_socket_and_on_a_dual_stack_socket():
    mapped = bytes(10) + b"\xff\xff"
    rows = decode(message() + message(family=10, local=mapped + LOCAL, remote=mapped + REMOTE)).rows
    assert [row["local_address"].item() for row in rows] == [mapped + LOCAL] * 2
    assert [row["remote_address"].item() for row in rows] == [mapped + REMOTE] * 2


def test_addresses_are_cut_unless_told_otherwise():
    six = bytes.fromhex("20010db8aabbccddeeff001122334455")
    rows = decode(message() + message(family=10, local=six, remote=six), origin=Origin("ams1", "e")).rows
    found = {(row["remote_address"].item().hex(), int(row["remote_prefix_length"])) for row in rows}
    assert found == {("00000000000000000000ffffcb007100", 120), ("20010db8aabbcc000000000000000000", 56)}


def test_other_messages_are_passed_over():
    done = struct.pack("<IHHIIi", 20, kernel.NLMSG_DONE, 2, 77, 0, 0)
    batch = decode(message(flags=0x301), message(family=1) + message() + done)
    assert (len(batch.rows), batch.other, batch.damaged) == (1, 3, 0)


def test_replies_to_the_old_request_are_sockets_too():
    assert len(decode(message(kind=kernel.TCPDIAG_GETSOCK)).rows) == 1


def test_an_interrupted_dump_is_noticed():
    known = {}
    assert decode(message(flags=2 | 0x10) + message(), known=known).interrupted
    assert not decode(message(), known=known).interrupted  # nothing of this dump was


def test_the_memory_of_layouts_is_bounded():
    known = {}
    for length in range(0, 1200, 4):
        padding = struct.pack("<HH", 4 + length, 15) + bytes(length)
        assert len(decode(message(padding), known=known).rows) == 1
    assert 0 < len(known) < 100


@pytest.mark.parametrize(
    "bad",
    [
        message(attribute(2, info(100))),  # shorter than any tcp_info
        message(attribute(16, bytes(16))),  # shorter than tcp_bbr_info
        message(attribute(4, b"a_name_that_is_too_long\0")),
        message(struct.pack("<HH", 3, 2)),  # an attribute shorter than its header: a loop for the careless
        message(struct.pack("<HH", 0, 0)),
        message(struct.pack("<HH", 200, 2)),  # beyond the message
        message(b"\1\2"),  # half a header
    ],
)
def test_a_message_that_contradicts_itself_is_counted_and_its_neighbours_are_read(bad):
    good = message(attribute(2, info(232)))
    padded = bad + bytes(-len(bad) % 4)
    batch = decode(good + padded + good, good)
    assert (len(batch.rows), batch.damaged) == (3, 1)


@pytest.mark.parametrize("length", [0, 15, 5000, 0xFFFFFFFF])
def test_an_impossible_message_length_costs_the_rest_of_its_datagram_only(length):
    good = message()
    bad = struct.pack("<I", length) + good[4:]
    batch = decode(good + bad + good, good)
    assert (len(batch.rows), batch.damaged) == (2, 1)


def test_a_sequence_number_that_occurs_in_the_data_is_no_message():
    good = message(sequence=0x0B)  # 11, which is also the receive queue
    assert len(decode(good * 3).rows) == 3


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from([104, 168, 232, 280])), max_size=40
    ),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=40),
)
def test_every_socket_is_found_however_messages_are_mixed_and_spread_over_datagrams(rows, sizes):
    messages = [
        message(
            *[attribute(40 + n, bytes(n)) for n in range(extra)],
            attribute(2, info(length)),
            family=10 if six else 2,
            cookie=cookie,
        )
        for cookie, (extra, six, length) in enumerate(rows)
    ]
    datagrams = []
    while messages:
        size = sizes[len(datagrams) % len(sizes)]
        datagrams.append(b"".join(messages[:size]))
        messages = messages[size:]
    batch = decode(*datagrams)
    assert (batch.damaged, batch.other) == (0, 0)
    found = {int(row["cookie"]): int(row["snd_wnd"]) for row in batch.rows}
    assert found == {
        cookie: expected_info(info(length))["snd_wnd"] for cookie, (_, _, length) in enumerate(rows)
    }


def recorded(name):
    if not CAPTURES.is_dir():
        pytest.skip("the captures of other kernels lie beside the repository")
    return [datagram.data for datagram in read_capture(CAPTURES / name)]


@pytest.mark.parametrize("name", ["5_4_281_tcp_10_sockets.pcap", "6_10_3_tcp_10_sockets.pcap"])
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_recorded_dump_can_raise_or_lose_untouched_datagrams(name, data):
    datagrams = [bytearray(datagram) for datagram in recorded(name)]
    whole = len(decode(*map(bytes, datagrams)).rows)
    which = data.draw(st.integers(0, len(datagrams) - 1))
    hit = datagrams[which]
    in_it = len(decode(bytes(hit)).rows)
    for _ in range(data.draw(st.integers(1, 6))):
        hit[data.draw(st.integers(0, len(hit) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del hit[data.draw(st.integers(0, len(hit))) :]
    rows = len(decode(*map(bytes, datagrams)).rows)
    assert whole - in_it <= rows <= whole + 400  # a mutated length may split one message into several


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=600), max_size=4))
def test_no_bytes_can_raise(datagrams):
    batch = decode(*datagrams)
    assert len(batch.rows) * kernel.ATTRIBUTES_AT <= sum(map(len, datagrams))


def test_a_second_parser_reads_the_same_from_2000_sockets_with_bbr():
    datagrams = recorded("6_10_3_tcp_2000_sockets_bbr.pcap")
    rows = {int(row["cookie"]): row for row in decode(*datagrams).rows}
    assert len(rows) == 6003
    compared = 0
    for datagram in datagrams:
        for at in messages_of(datagram)[::23]:
            witness = inet_diag_msg(datagram, offset=at)
            witness.decode()
            row = rows[witness["idiag_cookie"]]
            assert row["uid"] == witness["idiag_uid"]
            assert row["remote_port"] == witness["idiag_dport"]
            tcp = witness.get_attr("INET_DIAG_INFO")
            names = {
                "rtt_us": "rtt",
                "min_rtt_us": "min_rtt",
                "bytes_acked": "bytes_acked",
                "snd_wnd": "snd_wnd",
            }
            assert {n: row[n] for n in names} == {n: tcp[f"tcpi_{names[n]}"] for n in names}
            bbr = witness.get_attr("INET_DIAG_BBRINFO")
            assert row["congestion_control"].decode() == witness.get_attr("INET_DIAG_CONG")
            if bbr:
                assert row["bbr_bw"] == bbr["bbr_bw_hi"] << 32 | bbr["bbr_bw_lo"]
                assert row["bbr_pacing_gain"] == bbr["bbr_pacing_gain"]
            compared += 1
    assert compared > 200


def messages_of(datagram):
    starts, at = [], 0
    while at + 88 <= len(datagram):
        length, kind, flags = struct.unpack_from("<IHH", datagram, at)
        starts += [at] if kind == 20 and not flags & 1 else []
        at += (length + 3) & ~3
    return starts
