"""One `tcpinfo` connection of M-Lab, a JSON record a line, as rows: inet_diag messages, with attributes in base64.

https://github.com/m-lab/tcp-info describes the format: `RawIDM` is struct inet_diag_msg, `Attributes` the netlink
attributes by type, both as the kernel of an x86 host wrote them.
"""

import binascii
import json
from base64 import b64decode
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import BYTES_LENGTH, new_rows
from tidegate.telemetry.mlab_record import Snapshots, cut, unix_ns

# enum in include/uapi/linux/inet_diag.h
_INFO: Final = 2
_CONG: Final = 4
_BBRINFO: Final = 16
_AF_INET: Final = 2

# struct inet_diag_msg, include/uapi/linux/inet_diag.h; ports and addresses in network order.
_MESSAGE: Final = np.dtype(
    [
        ("family", "u1"), ("state", "u1"), ("timer", "u1"), ("retrans", "u1"),
        ("local_port", ">u2"), ("remote_port", ">u2"),
        ("local_address", "u1", 16), ("remote_address", "u1", 16),
        ("interface", "<u4"), ("cookie", "<u8"), ("expires", "<u4"),
        ("receive_queue", "<u4"), ("send_queue", "<u4"), ("uid", "<u4"), ("inode", "<u4"),
    ]
)  # fmt: skip
_FROM_MESSAGE: Final = (
    "cookie", "inode", "local_port", "receive_queue", "remote_port", "send_queue", "state", "timer", "uid",
)  # fmt: skip

# struct tcp_info, include/uapi/linux/tcp.h: offset and format of what a row holds. Older kernels send less of it.
_TCP_INFO_LENGTH: Final = 232
_TCP_INFO_FIELDS: Final = {
    "ca_state": (1, "u1"), "retransmits": (2, "u1"), "scales": (6, "u1"), "flags": (7, "u1"),
    "rto_us": (8, "<u4"), "snd_mss": (16, "<u4"), "unacked": (24, "<u4"), "lost": (32, "<u4"),
    "retrans": (36, "<u4"), "pmtu": (60, "<u4"), "rtt_us": (68, "<u4"), "rttvar_us": (72, "<u4"),
    "snd_ssthresh": (76, "<u4"), "snd_cwnd": (80, "<u4"), "reordering": (88, "<u4"),
    "total_retrans": (100, "<u4"), "pacing_rate": (104, "<u8"), "max_pacing_rate": (112, "<u8"),
    "bytes_acked": (120, "<u8"), "bytes_received": (128, "<u8"), "segs_out": (136, "<u4"),
    "segs_in": (140, "<u4"), "notsent_bytes": (144, "<u4"), "min_rtt_us": (148, "<u4"),
    "data_segs_in": (152, "<u4"), "data_segs_out": (156, "<u4"), "delivery_rate": (160, "<u8"),
    "busy_time_us": (168, "<u8"), "rwnd_limited_us": (176, "<u8"), "sndbuf_limited_us": (184, "<u8"),
    "delivered": (192, "<u4"), "delivered_ce": (196, "<u4"), "bytes_sent": (200, "<u8"),
    "bytes_retrans": (208, "<u8"), "snd_wnd": (228, "<u4"),
}  # fmt: skip
_TCP_INFO: Final = np.dtype(
    {
        "names": list(_TCP_INFO_FIELDS),
        "formats": [fmt for _, fmt in _TCP_INFO_FIELDS.values()],
        "offsets": [offset for offset, _ in _TCP_INFO_FIELDS.values()],
        "itemsize": _TCP_INFO_LENGTH,
    }
)
_DERIVED: Final = frozenset({"scales", "flags"})

# struct tcp_bbr_info, include/uapi/linux/inet_diag.h, its bandwidth's two halves as one little-endian number.
_BBR: Final = np.dtype(
    [("bbr_bw", "<u8"), ("bbr_min_rtt_us", "<u4"), ("bbr_pacing_gain", "<u4"), ("bbr_cwnd_gain", "<u4")]
)


def decode(lines: bytes) -> Snapshots:
    """The snapshots of one connection; its metadata and records without TCP_INFO are counted, not loaded.

    Raises:
        ValueError: a line is not a record of the format; the message names it.
    """
    times: list[int] = []
    messages, infos, names, bbrs = bytearray(), bytearray(), bytearray(), bytearray()
    left_out: dict[str, int] = {}
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            record = json.loads(line)
            attributes = record.get("Attributes") or []
            if "Metadata" in record or len(attributes) <= _INFO or not attributes[_INFO]:
                reason = "metadata record" if "Metadata" in record else "record without TCP_INFO"
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            messages += _exactly(record["RawIDM"], _MESSAGE.itemsize)
            infos += _up_to(attributes, _INFO, _TCP_INFO_LENGTH)
            names += _up_to(attributes, _CONG, BYTES_LENGTH["congestion_control"])
            bbrs += _up_to(attributes, _BBRINFO, _BBR.itemsize)
            times.append(unix_ns(record["Timestamp"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
            raise ValueError(f"line {number}: not a record of tcpinfo: {error}") from error
    return Snapshots(_rows(times, messages, infos, names, bbrs), left_out)


def _rows(
    times: list[int], messages: bytearray, infos: bytearray, names: bytearray, bbrs: bytearray
) -> npt.NDArray[np.void]:
    rows = new_rows(len(times))
    rows["observed_at_ns"] = times
    message = np.frombuffer(messages, _MESSAGE)
    for field in _FROM_MESSAGE:
        rows[field] = message[field]
    for side in ("local", "remote"):
        addresses = _mapped(message[f"{side}_address"], message["family"] == _AF_INET)
        rows[f"{side}_address"], rows[f"{side}_prefix_length"] = cut(addresses)
    info = np.frombuffer(infos, _TCP_INFO)
    for field in _TCP_INFO_FIELDS.keys() - _DERIVED:
        rows[field] = info[field]
    # Bit fields: tcpi_snd_wscale is the low half of its byte, tcpi_delivery_rate_app_limited the lowest bit.
    rows["send_wscale"], rows["receive_wscale"] = info["scales"] & 15, info["scales"] >> 4
    rows["delivery_rate_app_limited"] = info["flags"] & 1
    rows["congestion_control"] = np.frombuffer(names, f"S{BYTES_LENGTH['congestion_control']}")
    bbr = np.frombuffer(bbrs, _BBR)
    for field in _BBR.names or ():
        rows[field] = bbr[field]
    return rows


def _mapped(addresses: npt.NDArray[np.uint8], is_ipv4: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Addresses of shape (n, 16); those of AF_INET, which stand in the first four bytes, as ::ffff:a.b.c.d."""
    mapped = addresses.copy()
    mapped[is_ipv4] = 0
    mapped[is_ipv4, 10:12] = 0xFF
    mapped[is_ipv4, 12:] = addresses[is_ipv4, :4]
    return mapped


def _exactly(text: str, length: int) -> bytes:
    data = b64decode(text, validate=True)
    if len(data) != length:
        raise ValueError(f"a message of {len(data)} bytes instead of {length}")
    return data


def _up_to(attributes: list[Any], kind: int, length: int) -> bytes:
    """An attribute cut or filled with zeros to `length`: what an older kernel does not know is zero."""
    text = attributes[kind] if kind < len(attributes) else None
    return b64decode(text or "", validate=True)[:length].ljust(length, b"\0")
