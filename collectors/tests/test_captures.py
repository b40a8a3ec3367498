"""Every capture of another kernel is held against a second reading of it: the text of `ss`, or pyroute2's parser."""

import struct
from pathlib import Path

import numpy as np
import pytest
from pyroute2.netlink.diag import inet_diag_msg
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.capture import read_capture
from tidegate_edge.sockets.rows import Origin, make_rows

CAPTURES = Path(__file__).parents[3] / "shared" / "data" / "netlink"
WITHOUT_SS = "6_10_3_tcp_2000_sockets_bbr.pcap"
pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the captures of other kernels lie beside the repository"
)
# Of struct tcp_info (Linux, include/uapi/linux/tcp.h), under our names.
TCP_INFO = (
    "ca_state", "retransmits", "rto_us", "snd_mss", "unacked", "lost", "retrans", "pmtu", "rtt_us", "rttvar_us",
    "snd_ssthresh", "snd_cwnd", "reordering", "total_retrans", "min_rtt_us", "segs_out", "segs_in",
    "data_segs_out", "data_segs_in", "notsent_bytes", "delivered", "delivered_ce", "snd_wnd", "pacing_rate",
    "max_pacing_rate", "delivery_rate", "bytes_acked", "bytes_received", "bytes_sent", "bytes_retrans",
    "busy_time_us", "rwnd_limited_us", "sndbuf_limited_us",
)  # fmt: skip
MESSAGE = {"uid": "idiag_uid", "inode": "idiag_inode", "state": "idiag_state", "local_port": "idiag_sport"}


def test_every_capture_but_one_has_the_text_of_ss_beside_it():
    captures = {path.name for path in CAPTURES.glob("*.pcap")}
    witnessed = {
        name
        for name in captures
        if (CAPTURES / name.replace("_tcp_", "_ss_tcp_info_a_").replace("_sockets.pcap", "")).exists()
    }
    assert captures - witnessed == {WITHOUT_SS}
    assert len(witnessed) == 6  # test_agrees_with_ss.py compares these


def sockets_in(datagram):
    """Where the messages of sockets begin, as netlink(7) says it."""
    at = 0
    while at + 88 <= len(datagram):
        length, kind, flags = struct.unpack_from("<IHH", datagram, at)
        if kind == 20 and not flags & 1:
            yield at
        at += (length + 3) & ~3


def test_the_one_without_is_read_as_pyroute2_reads_it_every_message_and_field():
    datagrams = [datagram.data for datagram in read_capture(CAPTURES / WITHOUT_SS)]
    data, places = b"", []
    for datagram in datagrams:
        places.append((len(data), len(data) + len(datagram)))
        data += datagram + bytes(-len(datagram) % 4)
    batch = make_rows(np.frombuffer(data, "<u4"), places, Origin("ams1", "edge1", FULL), 1)
    rows = {int(row["cookie"]): row for row in batch.rows}
    read = bbr = 0
    for datagram in datagrams:
        for at in sockets_in(datagram):
            witness = inet_diag_msg(datagram, offset=at)
            witness.decode()
            row = rows[witness["idiag_cookie"]]
            info, algorithm = witness.get_attr("INET_DIAG_INFO"), witness.get_attr("INET_DIAG_CONG")
            seen = {name: int(row[name]) for name in (*MESSAGE, *TCP_INFO)}
            theirs = {name: witness[key] for name, key in MESSAGE.items()}
            theirs |= {name: info[f"tcpi_{name.removesuffix('_us')}"] for name in TCP_INFO}
            assert seen == theirs
            assert row["congestion_control"].decode() == algorithm
            if told := witness.get_attr("INET_DIAG_BBRINFO"):
                bbr += 1
                assert int(row["bbr_bw"]) == told["bbr_bw_hi"] << 32 | told["bbr_bw_lo"]
                assert int(row["bbr_min_rtt_us"]) == told["bbr_min_rtt"]
            read += 1
    assert (read, bbr, batch.damaged) == (len(rows), 4000, 0)
    assert read > 6000
