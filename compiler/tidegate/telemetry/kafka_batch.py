"""Messages of a topic, gathered until they make a block: pure, so that the same offsets give the same rows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.rows import ROW, ROW_LENGTH
from tidegate.telemetry.frames import framed
from tidegate.telemetry.kafka_ledger import Claim, Range

DAMAGED: Final = "message is not whole rows of this schema version"


@dataclass(slots=True)
class Batch:
    """Messages that are read and not yet inserted; `first` and `next` are offsets by partition, `size` is bytes."""

    first: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    values: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, partition: int, offset: int, value: bytes) -> None:
        """Take one message; a partition's come in the order of their offsets."""
        self.first.setdefault(partition, offset)
        self.next[partition] = offset + 1
        self.values.append(value)
        self.size += len(value)

    def claim(self, topic_id: str) -> Claim:
        """The ranges of offsets that these messages are."""
        return Claim(topic_id, tuple(Range(p, self.first[p], self.next[p]) for p in sorted(self.first)))


def rows_of(values: list[bytes]) -> tuple[npt.NDArray[np.void], Counter[str]]:
    """The rows of all messages that are undamaged from end to end, and how many messages are not.

    Half a message is not taken: what damaged its end may have touched its beginning.
    """
    whole = [value for value in values if len(value) % ROW_LENGTH == 0]
    damaged = len(values) - len(whole)
    data = np.frombuffer(b"".join(whole), np.uint8)
    good = framed(data)
    if not good.all():
        counts = np.array([len(value) // ROW_LENGTH for value in whole])
        message = np.repeat(np.arange(len(whole)), counts)
        struck = np.unique(message[~good])
        damaged += len(struck)
        kept = ~np.isin(message, struck)
        data = np.ascontiguousarray(data.reshape(-1, ROW_LENGTH)[kept]).reshape(-1)
    return data.view(ROW), Counter({DAMAGED: damaged} if damaged else {})
