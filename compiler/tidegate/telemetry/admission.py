"""Which rows of telemetry are admitted. It comes from outside: what cannot be true is left out and counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.telemetry.columns import Array, Names

DAY_NS: Final = 86_400 * 10**9
EARLIEST_NS: Final = (
    1_420_070_400 * 10**9
)  # 2015-01-01, before the first kernel that reports delivery rates (4.9)
_CLASSES: Final = 5  # TrafficClass of schemas/sockets.proto
_ADDRESS_BITS: Final = 128
NUMBERS: Final = ("observed_at_ns", "traffic_class", "local_prefix_length", "remote_prefix_length")
NAMES: Final = ("pop", "host", "congestion_control")
_NAME: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The rows that may enter, the reasons why others may not, and the days (since the epoch) that they touch."""

    rows: npt.NDArray[np.void]
    left_out: Mapping[str, int]
    days: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Which rows may enter, the reasons why others may not, and the days (since the epoch) that the former touch.

    `all_good` says that nothing is left out.
    """

    good: npt.NDArray[np.bool_]
    left_out: Mapping[str, int]
    days: frozenset[int]

    @property
    def all_good(self) -> bool:
        """Whether every row may enter."""
        return not self.left_out

    @property
    def count(self) -> int:
        """Rows that may enter."""
        return len(self.good) - sum(self.left_out.values())


def judge(
    numbers: Mapping[str, Array], names: Mapping[str, Names], now_ns: int, earliest_ns: int = EARLIEST_NS
) -> Judgement:
    """Leave out rows that are damaged or lie in time; a row counts under its first reason only.

    Args:
        numbers: the columns `NUMBERS` of rows.
        names: their columns `NAMES`.
        now_ns: Unix time in nanoseconds; a clock may run up to a day ahead of ours.
        earliest_ns: Unix time of the oldest row that is plausible.
    """
    time = numbers["observed_at_ns"]
    checks = {
        "time before 2015 or in the future": (time >= EARLIEST_NS) & (time <= now_ns + DAY_NS),
        "older than the stream may be": time >= earliest_ns,
        "POP is not a name": _are_names(names["pop"], may_be_empty=False),
        "host is not a name": _are_names(names["host"], may_be_empty=False),
        "congestion control is not a name": _are_names(names["congestion_control"], may_be_empty=True),
        "unknown traffic class": numbers["traffic_class"] < _CLASSES,
        "prefix longer than its address": (numbers["local_prefix_length"] <= _ADDRESS_BITS)
        & (numbers["remote_prefix_length"] <= _ADDRESS_BITS),
    }
    good = np.ones(len(time), np.bool_)
    left_out = {}
    for reason, holds in checks.items():
        if count := int(np.count_nonzero(good & ~holds)):
            left_out[reason] = count
        good &= holds
    return Judgement(good, MappingProxyType(left_out), _days(time if not left_out else time[good]))


def _days(time: Array) -> frozenset[int]:
    """Days since the epoch; mostly one, which needs no sorting."""
    if not len(time):
        return frozenset()
    first, last = int(time.min()) // DAY_NS, int(time.max()) // DAY_NS
    if first == last:
        return frozenset([first])
    return frozenset(np.unique(time // np.uint64(DAY_NS)).tolist())


def _are_names(column: Names, *, may_be_empty: bool) -> npt.NDArray[np.bool_]:
    """For each row, whether its name is letters, digits, `.`, `_`, `-`, then nothing but NUL."""
    characters = column.values.view(np.uint8).reshape(-1, column.values.dtype.itemsize)
    allowed = np.zeros(256, np.bool_)
    allowed[list(_NAME)] = True
    used = characters != 0
    ends_once = (used[:, 1:] <= used[:, :-1]).all(axis=1)
    good = ends_once & (allowed[characters] | ~used).all(axis=1)
    if not may_be_empty:
        good &= used[:, 0]
    held: npt.NDArray[np.bool_] = good[column.codes]
    return held
