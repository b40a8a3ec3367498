"""Rows to Kafka, through a spool on disk: what the broker does not acknowledge is still here."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from confluent_kafka import KafkaException

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.sockets.decode import Rows

from .kafka_shipper import Destination, Shipper
from .spool import Spool

# Before compression; below Kafka's own bound of 1 MB (message.max.bytes of broker and client).
MESSAGE_BYTES: Final = 900_000

_DRAIN_SECONDS: Final = 5.0
_TELL_EVERY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Shipped:
    """What became of rows since the spool was made; all but `error` are rows.

    Attributes:
        delivered: acknowledged by the broker.
        dropped: never to be delivered: the spool was full, the disk refused, or a crash cut them.
        spooled: on disk, still to be delivered.
        error: why the broker does not take them; None while it does.
    """

    delivered: int
    dropped: int
    spooled: int
    error: str | None


class KafkaSink:
    """A topic. `write` returns once the rows are in the spool, never waits for a broker, and never raises.

    Each message is some whole rows of one poll, keyed by the host, so that a host's rows stay in order within one
    partition. Its headers are `schema_version`, `pop`, `spool` (name of the numbering), `row` (number of its first
    row) and `rows`, in text.

    Rows arrive at least once. Retries of a running collector write nothing twice (idempotent producer, KIP-98). A
    collector that ends between the broker's acknowledgement and the note of it sends again what was in flight, at
    most `kafka_shipper.WINDOW` messages, and after a power cut also what the disk did not yet know as acknowledged;
    with the same `spool` and `row`, by which `tidegate ingest` takes them once. A row itself is identified by host,
    netns, cookie and observed_at_ns.

    Args:
        brokers: `host:port`, separated by commas.
        destination: the topic, and what each message says of its origin.
        options: librdkafka's, as `read_kafka_config` gives them.
        spool: taken over, and closed by `close`.
        tell: gets a line when the broker goes or comes, and at most once a minute one about rows dropped.
        drain_seconds: that `close` may wait for the broker.

    Raises:
        Failure: librdkafka does not take the options.
    """

    def __init__(
        self,
        brokers: str,
        destination: Destination,
        options: Mapping[str, str],
        spool: Spool,
        *,
        tell: Callable[[str], None],
        drain_seconds: float = _DRAIN_SECONDS,
    ) -> None:
        self._spool: Final = spool
        self._tell: Final = tell
        self._message: Final = np.empty(
            (MESSAGE_BYTES // destination.row_length, destination.row_length), np.uint8
        )
        self._told_dropped = spool.dropped
        self._told_at = time.monotonic() - _TELL_EVERY_SECONDS
        try:
            self._shipper: Final = Shipper(
                {**options, "bootstrap.servers": brokers}, destination, spool, tell
            )
        except KafkaException as error:
            spool.close()
            raise Failure(f"Kafka: {error.args[0].str()}") from error
        self._drain_seconds: Final = drain_seconds
        self._thread: Final = threading.Thread(target=self._shipper.run, name="kafka", daemon=True)
        self._thread.start()

    @property
    def shipped(self) -> Shipped:
        """What became of the rows so far."""
        spool = self._spool
        return Shipped(spool.acknowledged, spool.dropped, spool.pending, self._shipper.error)

    def write(self, batches: Iterable[Rows]) -> None:
        """Spool all rows of a poll, in as few messages as hold them; where there is no room for them, count them."""
        filled = 0
        try:
            for rows in batches:
                begin = 0
                while begin < len(rows):
                    count = min(len(rows) - begin, len(self._message) - filled)
                    self._message[filled : filled + count] = (
                        rows[begin : begin + count].view(np.uint8).reshape(count, -1)
                    )
                    begin, filled = begin + count, filled + count
                    if filled == len(self._message):
                        self._spool_message(filled)
                        filled = 0
        finally:  # what a poll gave before it failed
            self._spool_message(filled)
        self._tell_dropped()

    def sync(self) -> None:
        """Have the disk keep what was written, so that its source need not be read again.

        Raises:
            Failure: it refuses.
        """
        try:
            self._spool.sync()
        except OSError as error:
            raise Failure(f"the spool: {error.strerror}", exit_code=MISSING_PART) from error

    def close(self) -> None:
        """Deliver what can be delivered soon; the rest stays in the spool for the next collector."""
        self._shipper.stop(self._drain_seconds)
        self._thread.join()
        self._spool.close()

    def _spool_message(self, rows: int) -> None:
        if rows:
            self._spool.append(self._message[:rows].data.cast("B"), rows)

    def _tell_dropped(self) -> None:
        dropped, now = self._spool.dropped, time.monotonic()
        if dropped > self._told_dropped and now - self._told_at >= _TELL_EVERY_SECONDS:
            self._tell(f"Kafka: {dropped - self._told_dropped} rows dropped: no room for them in the spool")
            self._told_dropped, self._told_at = dropped, now
