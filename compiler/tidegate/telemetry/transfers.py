"""Rows of the access log on their way into transfers."""

from typing import Final

import numpy as np

from tidegate.schemas.transfers import TRANSFERS
from tidegate.telemetry.record import RecordKind, at_most, field, is_name

_CLASSES: Final = 5  # TrafficClass of schemas/sockets.proto

TRANSFER: Final = RecordKind(
    TRANSFERS,
    "transfers",
    "finished_at_ns",
    {
        "POP is not a name": is_name("pop"),
        "host is not a name": is_name("host"),
        "congestion control is not a name": is_name("congestion_control", may_be_empty=True),
        "unknown traffic class": at_most("traffic_class", _CLASSES - 1),
        "prefix longer than its address": at_most("remote_prefix_length", 128),
        "status is none of HTTP": at_most("status", 999),
    },
    {
        "finished_at": field("finished_at_ns"),
        "pop": field("pop"),
        "host": field("host"),
        "traffic_class": field("traffic_class", np.int8),
        "remote_address": field("remote_address"),
        "remote_prefix_length": field("remote_prefix_length", np.uint8),
        "local_port": field("local_port"),
        "connection": field("connection"),
        "connection_requests": field("connection_requests"),
        "status": field("status", np.uint16),
        "bytes": field("bytes_sent"),
        "duration_us": field("duration_us"),
        "congestion_control": field("congestion_control"),
        "rtt_us": field("rtt_us"),
        "rttvar_us": field("rttvar_us"),
        "snd_cwnd": field("snd_cwnd"),
        "rcv_space": field("rcv_space"),
    },
)
