"""One `ndt7` test of M-Lab, a JSON document, as rows: a row per snapshot that the server took of its socket.

https://github.com/m-lab/ndt-server/blob/main/spec/data-format.md describes the format.
"""

import ipaddress
import json
from typing import Any, Final

import numpy as np

from tidegate.schemas.rows import ROW, new_rows
from tidegate.telemetry.mlab_record import Snapshots, cut, unix_ns

# M-Lab's names of struct tcp_info's fields (Linux, include/uapi/linux/tcp.h) and of its bit fields, to ours.
_TCP_INFO: Final = {
    "State": "state",
    "CAState": "ca_state",
    "Retransmits": "retransmits",
    "AppLimited": "delivery_rate_app_limited",
    "RTO": "rto_us",
    "SndMSS": "snd_mss",
    "Unacked": "unacked",
    "Lost": "lost",
    "Retrans": "retrans",
    "PMTU": "pmtu",
    "RTT": "rtt_us",
    "RTTVar": "rttvar_us",
    "SndSsThresh": "snd_ssthresh",
    "SndCwnd": "snd_cwnd",
    "Reordering": "reordering",
    "TotalRetrans": "total_retrans",
    "MinRTT": "min_rtt_us",
    "SegsOut": "segs_out",
    "SegsIn": "segs_in",
    "DataSegsOut": "data_segs_out",
    "DataSegsIn": "data_segs_in",
    "NotsentBytes": "notsent_bytes",
    "Delivered": "delivered",
    "DeliveredCE": "delivered_ce",
    "PacingRate": "pacing_rate",
    "MaxPacingRate": "max_pacing_rate",
    "DeliveryRate": "delivery_rate",
    "BytesAcked": "bytes_acked",
    "BytesReceived": "bytes_received",
    "BytesSent": "bytes_sent",
    "BytesRetrans": "bytes_retrans",
    "BusyTime": "busy_time_us",
    "RWndLimited": "rwnd_limited_us",
    "SndBufLimited": "sndbuf_limited_us",
}
_BBR_INFO: Final = {"MaxBandwidth": "bbr_bw", "MinRTT": "bbr_min_rtt_us"}


def decode(document: bytes) -> Snapshots:
    """The snapshots of one test. A test without BBR leaves the algorithm unknown: the format does not name it.

    Raises:
        ValueError: not a document of the format.
    """
    test = json.loads(document)
    taken: list[dict[str, int]] = []
    left_out: dict[str, int] = {}
    for direction in ("Download", "Upload"):
        part = test.get(direction)
        if not part:
            continue
        start_ns, cookie = unix_ns(part["StartTime"]), _cookie(part["UUID"])
        for snapshot in part["ServerMeasurements"] or ():
            row = _row(snapshot)
            if isinstance(row, str):
                left_out[row] = left_out.get(row, 0) + 1
            else:
                taken.append({**row, "cookie": cookie, "observed_at_ns": start_ns + row["observed_at_ns"]})
    rows = new_rows(len(taken))
    for name in taken[0] if taken else ():
        rows[name] = [row[name] for row in taken]
    rows["congestion_control"] = np.where(rows["bbr_bw"] > 0, b"bbr", b"")
    for side, key in (("local", "Server"), ("remote", "Client")):
        rows[f"{side}_address"], rows[f"{side}_prefix_length"] = cut(_address(test[f"{key}IP"]))
        rows[f"{side}_port"] = _port(test[f"{key}Port"])
    return Snapshots(rows, left_out)


def _row(snapshot: dict[str, Any]) -> dict[str, int] | str:
    """The fields of one snapshot, its time relative to the test's start; or why there is no row."""
    info = snapshot.get("TCPInfo")
    if not info:
        return "snapshot without TCP_INFO"
    bbr = snapshot.get("BBRInfo") or {}
    row = {ours: info.get(theirs, 0) for theirs, ours in _TCP_INFO.items()}
    row |= {ours: bbr.get(theirs, 0) for theirs, ours in _BBR_INFO.items()}
    row["observed_at_ns"] = info.get("ElapsedTime", 0) * 1000
    # The two scales share a byte (tcpi_snd_wscale is the low half on little-endian hosts).
    scales = info.get("WScale", 0)
    row |= {"send_wscale": scales & 15, "receive_wscale": scales >> 4}
    if row["max_pacing_rate"] == -1:  # the kernel's ~0: unlimited
        row["max_pacing_rate"] = 2**64 - 1
    if not all(isinstance(value, int) for value in row.values()):
        raise ValueError("a snapshot holds a value that is no integer")
    if any(not 0 <= value < 256 ** ROW[name].itemsize for name, value in row.items()):
        return "value out of range"
    return row


def _cookie(uuid: str) -> int:
    """The socket's cookie ends an M-Lab UUID (https://github.com/m-lab/uuid)."""
    return int(uuid.rpartition("_")[2], 16)


def _address(text: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    address = ipaddress.ip_address(text)
    mapped = f"::ffff:{address}" if address.version == 4 else str(address)
    return np.frombuffer(ipaddress.IPv6Address(mapped).packed, np.uint8).reshape(1, 16)


def _port(value: int) -> int:
    if not 0 <= value <= 65535:
        raise ValueError(f"{value} is not a port")
    return value
