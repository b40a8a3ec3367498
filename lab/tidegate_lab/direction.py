"""One direction of a link in virtual time: when each packet leaves, or that it is dropped. No clock, no I/O."""

import random
from dataclasses import dataclass

from tidegate_lab.shape import Shape


@dataclass(frozen=True, slots=True)
class Counters:
    """What became of the packets; `offered` = lost + tail_dropped + delivered + those still under way.

    Lateness is the emulator's own error: microseconds from the due time of a packet to its delivery.
    """

    offered: int
    lost: int
    tail_dropped: int
    delivered: int
    late_mean_us: float
    late_max_us: float


class Direction:
    """The state of one direction: the loss generator, and the time at which the queue will have drained."""

    def __init__(self, shape: Shape) -> None:
        self._draw = random.Random(shape.seed).random  # noqa: S311 - reproducible on purpose
        self._loss = shape.loss
        self._seconds_per_byte = 8 / shape.rate_bps if shape.rate_bps else 0.0
        self._delay_s = shape.delay_ms / 1000
        self._buffer_s = shape.buffer_bytes * self._seconds_per_byte
        self._drained_at = 0.0
        self._offered = self._lost = self._tail_dropped = self._delivered = 0
        self._late_sum_s = self._late_max_s = 0.0

    def offer(self, size: int, now: float) -> float | None:
        """Take in one packet.

        Args:
            size: bytes of the IP packet.
            now: seconds, not earlier than in the call before.

        Returns:
            When it comes out at the far end, in seconds, or None if it was lost or found the queue full.
        """
        self._offered += 1
        # One draw for every packet, lost or not: which packets are lost depends on the seed alone.
        if self._draw() < self._loss:
            self._lost += 1
            return None
        start = max(now, self._drained_at)
        drained_at = start + size * self._seconds_per_byte
        if self._buffer_s and drained_at - now > self._buffer_s:
            self._tail_dropped += 1
            return None
        self._drained_at = drained_at
        return drained_at + self._delay_s

    def deliver(self, due: float, now: float) -> None:
        """Count one packet as delivered at `now`, seconds, which was due at `due`."""
        late_s = now - due
        self._delivered += 1
        self._late_sum_s += late_s
        self._late_max_s = max(self._late_max_s, late_s)

    def counters(self) -> Counters:
        """The counts so far."""
        return Counters(
            offered=self._offered,
            lost=self._lost,
            tail_dropped=self._tail_dropped,
            delivered=self._delivered,
            late_mean_us=round(self._late_sum_s / max(1, self._delivered) * 1e6, 1),
            late_max_us=round(self._late_max_s * 1e6, 1),
        )
