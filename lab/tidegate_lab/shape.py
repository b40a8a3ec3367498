"""What one direction of a link does to the packets that cross it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Loss first, then a drop-tail queue drained at `rate_bps`, then the delay.

    Args:
        rate_bps: bits per second of IP packets; 0 is no limit, and no queue.
        delay_ms: one way, milliseconds.
        loss: probability that a packet is lost, each on its own.
        buffer_bytes: what the queue holds, the packet in transmission included; 0 is no limit.
        seed: of the loss; one seed loses the same packets, counted from the first, in every run.

    Raises:
        ValueError: a value that no link can have.
    """

    rate_bps: int = 0
    delay_ms: float = 0.0
    loss: float = 0.0
    buffer_bytes: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.rate_bps, self.delay_ms, self.buffer_bytes) < 0 or not 0 <= self.loss <= 1:
            raise ValueError(f"no link has this shape: {self}")

    @property
    def bandwidth_delay_bytes(self) -> int:
        """Bytes in flight that fill a link with this rate and this delay in both directions."""
        return round(self.rate_bps * 2 * self.delay_ms / 1000 / 8)
