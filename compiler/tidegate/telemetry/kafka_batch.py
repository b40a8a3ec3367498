"""Messages of a topic, gathered until they make a block: pure, so that the same offsets give the same rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.schemas.records import Records
from tidegate.schemas.rows import ROW, ROW_LENGTH
from tidegate.telemetry.frames import framed
from tidegate.telemetry.kafka_ledger import Claim, Range
from tidegate.telemetry.kafka_spools import Headers, Spool, Spools, origin_of, take
from tidegate.telemetry.native import NativeBlock
from tidegate.telemetry.record_kinds import RECORD_KINDS, RecordFormat, kind_of_rows

DAMAGED: Final = "message is not whole rows of this schema version"


@dataclass(slots=True)
class Batch:
    """Messages that are read and not yet inserted.

    What kind of rows a message is, its frame tells, not the topic's name: under a wrong name nothing is lost.

    Attributes:
        spools: what has come of hosts' spools, before these messages and with them.
        sockets: the rows of sockets of all messages that are undamaged from end to end.
        first: offset of each partition's first message.
        next: offset after its last one.
        messages: how many there are.
        damaged: how many of them are not whole rows. Half a message is not taken: what damaged its end may have
            touched its beginning.
        size: bytes of all messages.
        came: the spools that these messages are of, with them.
        sent_again: rows that had come before, which are not taken again.
        unnumbered: messages whose headers do not say which rows of which spool they hold. All their rows are taken.
        gone_back: messages whose rows are newer than all that came of their spool, though their numbers are not;
            likewise.
    """

    spools: Spools
    sockets: NativeBlock
    first: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    damaged: int = 0
    size: int = 0
    came: dict[str, Spool] = field(default_factory=dict)
    sent_again: int = 0
    unnumbered: int = 0
    gone_back: int = 0
    _records: dict[RecordFormat, list[bytes]] = field(default_factory=dict)

    def add(self, partition: int, offset: int, value: bytes, headers: Headers) -> None:
        """Take one message; a partition's come in the order of their offsets."""
        self.first.setdefault(partition, offset)
        self.next[partition] = offset + 1
        self.messages += 1
        self.size += len(value)
        if len(value) % ROW_LENGTH or (value and not framed(memoryview(value)).all()):
            self._add_records(value, headers)
            return
        rows = np.frombuffer(value, ROW)
        for piece in self._fresh(headers, rows["observed_at_ns"]):
            self.sockets.add(rows[piece])

    @property
    def records(self) -> dict[RecordFormat, Records]:
        """Rows of the other kinds, likewise."""
        return {kind: RECORD_KINDS[kind].form.read(b"".join(some)) for kind, some in self._records.items()}

    @property
    def left_out(self) -> dict[str, int]:
        """Messages that gave no row, by reason."""
        return {DAMAGED: self.damaged} if self.damaged else {}

    def claim(self, topic_id: str) -> Claim:
        """The ranges of offsets that these messages are."""
        return Claim(topic_id, tuple(Range(p, self.first[p], self.next[p]) for p in sorted(self.first)))

    def _add_records(self, value: bytes, headers: Headers) -> None:
        name = kind_of_rows(value)
        if name is None:
            self.damaged += 1
            return
        kind = RECORD_KINDS[name]
        length = kind.form.length
        for piece in self._fresh(headers, kind.form.read(value)[kind.time]):
            self._records.setdefault(name, []).append(value[piece.start * length : piece.stop * length])

    def _fresh(self, headers: Headers, times: npt.NDArray[np.uint64]) -> Iterator[slice]:
        """Which rows of a message had not come before; `times` are those of its rows."""
        if not len(times):
            return
        origin = origin_of(headers, len(times))
        if origin is None:
            self.unnumbered += 1
            yield slice(0, len(times))
            return
        taken = take(self.spools[origin.spool], origin.rows, int(times.max()))
        self.spools[origin.spool] = self.came[origin.spool] = taken.spool
        self.gone_back += taken.gone_back
        self.sent_again += len(times) - sum(end - first for first, end in taken.fresh)
        start = origin.rows[0]
        yield from (slice(first - start, end - start) for first, end in taken.fresh)
