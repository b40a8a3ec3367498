"""When to poll: at whole intervals after the start, however long a poll takes."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to poll.

    Attributes:
        interval_ns: between two slots, nanoseconds.
        jitter_ns: a poll begins up to so much after its slot; at most half the interval.
        max_cpu: share of one processor that polls may take on average, 0 to 1.
    """

    interval_ns: int
    jitter_ns: int = 0
    max_cpu: float = 1.0

    def due_ns(self, slot: int) -> int:
        """When the poll of a slot begins, nanoseconds after the start; another time at each call."""
        # Spreads hosts over the interval; nobody gains from guessing it.
        return slot * self.interval_ns + random.randint(0, self.jitter_ns)  # noqa: S311


@dataclass(frozen=True, slots=True)
class Slot:
    """A poll's place in the schedule.

    Attributes:
        number: 0 is the start.
        skipped: slots that passed while the poll before was still running.
        spared: slots left out so that polls stay within their share of a processor.
    """

    number: int
    skipped: int
    spared: int = 0


def next_slot(last: int, elapsed_ns: int, pace: Pace, cpu_ns: int = 0) -> Slot:
    """The slot that comes next; one that has passed already is skipped, not caught up with.

    Args:
        last: number of the slot that was polled last.
        elapsed_ns: since the start, nanoseconds.
        pace: how often to poll.
        cpu_ns: processor time of the poll, nanoseconds; it is spread over as many intervals as its share takes.
    """
    # A slot that is due at this very moment has not passed.
    free = max(last + 1, _ceil(elapsed_ns, pace.interval_ns))
    number = max(free, last + _ceil(round(cpu_ns / pace.max_cpu), pace.interval_ns))
    return Slot(number, free - last - 1, number - free)


def _ceil(length_ns: int, interval_ns: int) -> int:
    return -(-length_ns // interval_ns)
