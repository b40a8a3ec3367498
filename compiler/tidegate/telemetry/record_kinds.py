"""The kinds of telemetry beside the sockets, each told by the frame of its rows."""

from contextlib import suppress
from typing import Final, Literal

from tidegate.telemetry.hosts import HEALTH
from tidegate.telemetry.record import RecordKind
from tidegate.telemetry.transfers import TRANSFER

RecordFormat = Literal["health", "transfers"]
RECORD_KINDS: Final[dict[RecordFormat, RecordKind]] = {"health": HEALTH, "transfers": TRANSFER}


def kind_of_rows(value: bytes) -> RecordFormat | None:
    """Which of these kinds the bytes are whole rows of, from end to end; None: none of them, or no bytes."""
    for name, kind in RECORD_KINDS.items():
        with suppress(ValueError):
            if len(kind.form.read(value)):
                return name
    return None
