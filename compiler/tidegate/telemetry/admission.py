"""Which rows of telemetry are admitted. It comes from outside: what cannot be true is left out and counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

_DAY_NS: Final = 86_400 * 10**9
EARLIEST_NS: Final = (
    1_420_070_400 * 10**9
)  # 2015-01-01, before the first kernel that reports delivery rates (4.9)
_CLASSES: Final = 5  # TrafficClass of schemas/sockets.proto
_ADDRESS_BITS: Final = 128
_NAME: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The rows that may enter, the reasons why others may not, and the days (since the epoch) that they touch."""

    rows: npt.NDArray[np.void]
    left_out: Mapping[str, int]
    days: frozenset[int]


def admit(rows: npt.NDArray[np.void], now_ns: int, earliest_ns: int = EARLIEST_NS) -> Admitted:
    """Leave out rows that are damaged or lie in time; a row counts under its first reason only.

    Args:
        rows: of schemas/rows.py.
        now_ns: Unix time in nanoseconds; a clock may run up to a day ahead of ours.
        earliest_ns: Unix time of the oldest row that is plausible.
    """
    time = rows["observed_at_ns"]
    checks = {
        "time before 2015 or in the future": (time >= EARLIEST_NS) & (time <= now_ns + _DAY_NS),
        "older than the stream may be": time >= earliest_ns,
        "POP is not a name": _is_name(rows["pop"], may_be_empty=False),
        "host is not a name": _is_name(rows["host"], may_be_empty=False),
        "congestion control is not a name": _is_name(rows["congestion_control"], may_be_empty=True),
        "unknown traffic class": rows["traffic_class"] < _CLASSES,
        "prefix longer than its address": (rows["local_prefix_length"] <= _ADDRESS_BITS)
        & (rows["remote_prefix_length"] <= _ADDRESS_BITS),
    }
    good = np.ones(len(rows), np.bool_)
    left_out = {}
    for reason, holds in checks.items():
        if count := int(np.count_nonzero(good & ~holds)):
            left_out[reason] = count
        good &= holds
    admitted = rows if good.all() else _kept(rows, good)
    days = np.unique(admitted["observed_at_ns"] // np.uint64(_DAY_NS))
    return Admitted(admitted, MappingProxyType(left_out), frozenset(days.tolist()))


def _kept(rows: npt.NDArray[np.void], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.void]:
    """Whole rows: numpy's own selection of records leaves out the bytes between the fields, the frame."""
    return (
        np.ascontiguousarray(rows)
        .view(np.uint8)
        .reshape(-1, rows.itemsize)[good]
        .reshape(-1)
        .view(rows.dtype)
    )


def _is_name(column: npt.NDArray[np.bytes_], *, may_be_empty: bool) -> npt.NDArray[np.bool_]:
    """Whether each value is letters, digits, `.`, `_`, `-`, then nothing but NUL.

    Neighbours are mostly equal (a file is one host's), so only the first of each run is looked at.
    """
    if not len(column):
        return np.empty(0, np.bool_)
    column = np.ascontiguousarray(column)
    starts = np.flatnonzero(np.concatenate(([True], column[1:] != column[:-1])))
    characters = column[starts].view(np.uint8).reshape(len(starts), -1)
    allowed = np.zeros(256, np.bool_)
    allowed[list(_NAME)] = True
    used = characters != 0
    ends_once = (used[:, 1:] <= used[:, :-1]).all(axis=1)
    good = ends_once & (allowed[characters] | ~used).all(axis=1)
    if not may_be_empty:
        good &= used[:, 0]
    return np.repeat(good, np.diff(np.append(starts, len(column))))
