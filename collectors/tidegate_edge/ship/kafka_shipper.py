"""The thread that takes frames from the spool to the broker and notes what was acknowledged."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidegate_edge.schemas.rows import ROW_LENGTH, SCHEMA_VERSION

from .spool import Spool
from .spool_frame import Frame

WINDOW: Final = 8
"""Messages in flight: enough to fill 30 MB/s at a round trip of 200 ms, and below 8 MB of memory."""

_PAUSE_SECONDS: Final = 1.0  # after what the broker refused: a topic that is missing, a message too large
_SERVE_SECONDS: Final = 0.1

_DEFAULTS: Final = {
    "compression.type": "zstd",
    "linger.ms": "20",
    "client.id": "tidegate-collector",
    "reconnect.backoff.max.ms": "5000",
    "topic.metadata.refresh.interval.ms": "60000",
    "log_level": "0",  # what happens is told by `error`, once
}

# KIP-98: retried for ever, written once and in order, acknowledged by every replica in sync.
_REQUIRED: Final = {"enable.idempotence": "true", "acks": "all", "message.timeout.ms": "0"}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where messages go and whose they are.

    Attributes:
        topic: one for each kind of row.
        host: the key of every message.
        pop: the host's.
        schema_version: of the rows.
        row_length: of a row, bytes.
    """

    topic: str
    host: str
    pop: str
    schema_version: int = SCHEMA_VERSION
    row_length: int = ROW_LENGTH


@dataclass(slots=True)
class _Sent:
    frame: Frame
    done: bool = False
    lost: bool = False
    error: KafkaError | None = None


class Shipper:
    """Sends a spool in order, a window of frames at a time.

    Args:
        options: librdkafka's.
        destination: where to.
        spool: what to send.
        tell: gets a line when the broker stops taking rows, and when it takes them again.

    Attributes:
        error: the last one since something was delivered, or None.

    Raises:
        KafkaException: librdkafka does not take the options.
    """

    def __init__(
        self, options: Mapping[str, str], destination: Destination, spool: Spool, tell: Callable[[str], None]
    ) -> None:
        self.error: str | None = None
        self._tell: Final = tell
        self._options: Final = {**_DEFAULTS, **options, **_REQUIRED}
        self._destination: Final = destination
        self._spool: Final = spool
        self._in_flight: Final[deque[_Sent]] = deque()
        self._until: float | None = None  # monotonic; None: for ever
        self._producer = self._connect()

    def stop(self, seconds: float) -> None:
        """Make `run` return once everything is delivered, or after so many seconds. From another thread."""
        self._until = time.monotonic() + seconds
        self._spool.wake()

    def run(self) -> None:
        """Send until stopped."""
        while not self._over():
            self._fill()
            if self._in_flight:
                self._producer.poll(_SERVE_SECONDS)
                self._settle()
            else:
                self._producer.poll(0)
                if self._until is None:
                    self._spool.wait(1.0)
        self._producer.purge()

    def _over(self) -> bool:
        if self._until is None:
            return False
        return time.monotonic() >= self._until or not self._spool.pending

    def _connect(self) -> Producer:
        return Producer({**self._options, "error_cb": self._on_error})

    def _on_error(self, error: KafkaError) -> None:
        if self.error is None:
            self._tell(f"Kafka: {error.str()}; rows stay in the spool")
        self.error = error.str()

    def _fill(self) -> None:
        while len(self._in_flight) < WINDOW and (found := self._spool.next()) is not None:
            frame, data = found
            sent = _Sent(frame)
            self._in_flight.append(sent)
            self._produce(sent, data)

    def _produce(self, sent: _Sent, data: bytes) -> None:
        def on_delivery(error: KafkaError | None, _message: Message | None) -> None:
            sent.done, sent.error = True, error

        to, frame = self._destination, sent.frame
        try:
            self._producer.produce(
                to.topic,
                data,
                key=to.host,
                headers={
                    "schema_version": str(to.schema_version),
                    "pop": to.pop,
                    "spool": frame.numbering.hex(),
                    "row": str(frame.row),
                    "rows": str(frame.rows),
                },
                on_delivery=on_delivery,
            )
        except (KafkaException, BufferError) as refused:
            # Of a producer that has failed for good, or of librdkafka's own bound for a message.
            reason = refused.args[0]
            on_delivery(
                reason if isinstance(reason, KafkaError) else KafkaError(KafkaError._QUEUE_FULL), None
            )

    def _settle(self) -> None:
        """Note what was delivered up to the first that was not; once nothing moves, send that and the rest again."""
        while self._in_flight and self._in_flight[0].done and self._in_flight[0].error is None:
            sent = self._in_flight.popleft()
            if sent.lost:
                self._spool.give_up(sent.frame)
            else:
                self._spool.acknowledge(sent.frame)
                if self.error is not None:
                    self._tell("Kafka: rows are delivered again")
                self.error = None
        refused = next((sent.error for sent in self._in_flight if sent.error is not None), None)
        if refused is None or not all(sent.done for sent in self._in_flight):
            return
        self._on_error(refused)
        self._pause()
        if not self._over():
            self._send_again()

    def _pause(self) -> None:
        end = time.monotonic() + _PAUSE_SECONDS
        while time.monotonic() < end and not self._over():
            self._producer.poll(_SERVE_SECONDS)

    def _send_again(self) -> None:
        """A new producer, for after a refusal the old one's sequence may have a gap that it can't close."""
        self._producer = self._connect()
        for sent in self._in_flight:
            if sent.error is None:  # delivered; it waits for those before it
                continue
            data = self._spool.again(sent.frame)
            sent.done, sent.lost, sent.error = data is None, data is None, None
            if data is not None:
                self._produce(sent, data)
