"""Transfers as rows: classified, then cut."""

from collections.abc import Sequence

import numpy as np

from tidegate_edge.schemas.records import Records
from tidegate_edge.schemas.transfers import TRANSFERS
from tidegate_edge.sockets.addresses import Addresses
from tidegate_edge.sockets.rows import Origin

from .line import Transfer

_LOW: int = (1 << 64) - 1
_SAME_NAME = (
    "local_port",
    "connection",
    "connection_requests",
    "status",
    "bytes_sent",
    "duration_us",
    "rtt_us",
    "rttvar_us",
    "snd_cwnd",
    "rcv_space",
)


def make_rows(transfers: Sequence[Transfer], algorithms: Sequence[str], origin: Origin) -> Records:
    """A row for each transfer.

    Args:
        transfers: as logged.
        algorithms: the congestion control of each, empty where it is not known.
        origin: whose rows these are, and how addresses are treated.
    """
    rows = TRANSFERS.new(len(transfers))
    rows["pop"], rows["host"] = origin.pop.encode(), origin.host.encode()
    rows["finished_at_ns"] = [transfer.finished_at_us * 1000 for transfer in transfers]
    rows["congestion_control"] = [name.encode() for name in algorithms]
    for name in _SAME_NAME:
        rows[name] = [getattr(transfer, name) for transfer in transfers]
    remote = _addresses([transfer.remote_address for transfer in transfers])
    if origin.classifier:
        local = _addresses([transfer.local_address for transfer in transfers])
        rows["traffic_class"] = origin.classifier.classify(local, remote)
    cut, kept = remote.cut(origin.cut)
    both = np.column_stack((cut.high, cut.low)).astype(">u8")
    rows["remote_address"] = np.frombuffer(both.tobytes(), "V16")
    rows["remote_prefix_length"] = kept
    return rows


def _addresses(values: Sequence[int]) -> Addresses:
    return Addresses(
        np.array([value >> 64 for value in values], np.uint64),
        np.array([value & _LOW for value in values], np.uint64),
    )
