"""Messages of a topic, gathered until they make a block: pure, so that the same offsets give the same rows."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.records import Records
from tidegate.schemas.rows import ROW, ROW_LENGTH
from tidegate.telemetry.frames import framed
from tidegate.telemetry.kafka_ledger import Claim, Range
from tidegate.telemetry.record_kinds import RECORD_KINDS, RecordFormat, kind_of_rows

DAMAGED: Final = "message is not whole rows of this schema version"


@dataclass(slots=True)
class Batch:
    """Messages that are read and not yet inserted, sockets' rows in memory that the next batch takes over.

    What kind of rows a message is, its frame tells, not the topic's name: under a wrong name nothing is lost.

    Attributes:
        memory: for the bytes of sockets' rows; it grows where it must.
        first: offset of each partition's first message.
        next: offset after its last one.
        messages: how many there are.
        damaged: how many of them are not whole rows. Half a message is not taken: what damaged its end may have
            touched its beginning.
        size: bytes of all messages.
    """

    memory: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    first: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    damaged: int = 0
    size: int = 0
    _kept: int = 0
    _records: dict[RecordFormat, list[bytes]] = field(default_factory=dict)

    def add(self, partition: int, offset: int, value: bytes) -> None:
        """Take one message; a partition's come in the order of their offsets."""
        self.first.setdefault(partition, offset)
        self.next[partition] = offset + 1
        self.messages += 1
        self.size += len(value)
        if len(value) % ROW_LENGTH or (value and not framed(memoryview(value)).all()):
            self._add_records(value)
            return
        end = self._kept + len(value)
        if end > len(self.memory):
            self.memory = np.concatenate((self.memory, np.empty(end, np.uint8)))
        self.memory[self._kept : end] = np.frombuffer(value, np.uint8)
        self._kept = end

    @property
    def rows(self) -> npt.NDArray[np.void]:
        """Sockets: the rows of all messages that are undamaged from end to end."""
        return self.memory[: self._kept].view(ROW)

    @property
    def records(self) -> dict[RecordFormat, Records]:
        """Rows of the other kinds, likewise; in memory of their own."""
        return {kind: RECORD_KINDS[kind].form.read(b"".join(some)) for kind, some in self._records.items()}

    @property
    def left_out(self) -> dict[str, int]:
        """Messages that gave no row, by reason."""
        return {DAMAGED: self.damaged} if self.damaged else {}

    def claim(self, topic_id: str) -> Claim:
        """The ranges of offsets that these messages are."""
        return Claim(topic_id, tuple(Range(p, self.first[p], self.next[p]) for p in sorted(self.first)))

    def _add_records(self, value: bytes) -> None:
        if kind := kind_of_rows(value):
            self._records.setdefault(kind, []).append(value)
        else:
            self.damaged += 1
