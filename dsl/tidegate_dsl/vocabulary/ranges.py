"""How large a value may be, clause by clause, in base units."""

from dataclasses import dataclass
from typing import Final

from .units import Dimension


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a value, in base units."""

    low: int
    high: int


MAX_WINDOWS: Final = 128  # membership is kept as one bit a window, 128 bits wide

# A value beyond these is a slip of the pen; within them every product that SQL forms fits 64 bits.
DIMENSION_RANGES: Final[dict[Dimension, Range]] = {
    "duration": Range(0, 366 * 86_400_000_000),
    "size": Range(0, 1_000_000 * 1_000_000_000),
    "rate": Range(0, 1_000_000 * 1_000_000_000),
    "ratio": Range(0, 1_000_000),
    "segments": Range(0, 1_000_000),
    "flag": Range(0, 1),
}
STEP_RANGE: Final = Range(1_000_000, 86_400_000_000)
HOLD_RANGE: Final = Range(1_000_000, 30 * 86_400_000_000)
EVERY_RANGE: Final = Range(100_000, 3_600_000_000)
EXPIRE_RANGE: Final = Range(1_000_000, 7 * 86_400_000_000)
RANK_RANGE: Final = Range(1, 1_000_000)
HOLD_OUT_RANGE: Final = Range(0, 999_999)  # holding out everything would treat nothing
DESTINATIONS_RANGE: Final = Range(1, 999_999)
SMOOTH_RANGE: Final = Range(1, 1_000_000)
TRANSFER_SIZE_RANGE: Final = Range(1, 1_000 * 1_000_000_000)
SAMPLES_RANGE: Final = Range(1, 1_000_000)
WINDOWS_RANGE: Final = Range(1, MAX_WINDOWS)
RELEASE_RANGE: Final = Range(60_000_000, 30 * 86_400_000_000)
SWITCHBACK_RANGE: Final = Range(600_000_000, 7 * 86_400_000_000)  # ten minutes: a rollout takes some
ABORT_RANGE: Final = Range(10_000, 100_000_000)  # 1% to 10,000% of the hold-out
CHURN_RANGE: Final = Range(1, 1_000_000)
HOSTS_RANGE: Final = Range(1, 999_999)
PREFIXES_PER_ARM_RANGE: Final = Range(1, 1_000_000)
PERCENTILE_RANGE: Final = Range(1, 99)
YEARS: Final = Range(2000, 2105)  # what ClickHouse's DateTime holds, and room for a lookback
