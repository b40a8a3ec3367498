"""Why a file of telemetry is refused, whatever kind of rows it holds."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from tidegate.errors import Failure

MAX_DAYS: Final = 90  # ClickHouse takes one insert into at most 100 partitions, and ours are days


def unreadable(path: Path, error: OSError) -> Failure:
    """The system does not give it."""
    return Failure(f"{path}: cannot be read: {error.strerror}")


def changed(path: Path) -> Failure:
    """It is not as long, or not the same, as when it was read first."""
    return Failure(f"{path}: changed while it was read", help="load it when nothing writes to it")


def check_days(path: Path, days: Collection[int]) -> None:
    """Refuse a file whose rows lie on too many days.

    Raises:
        Failure: more than `MAX_DAYS`.
    """
    if len(days) > MAX_DAYS:
        raise Failure(
            f"{path}: its rows lie on {len(days)} different days, more than {MAX_DAYS}",
            help="look at the clock of the host that wrote it, or split the file by days",
        )
