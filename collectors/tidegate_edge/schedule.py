"""When to poll: at whole intervals after the start, however long a poll takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """A poll's place in the schedule.

    Attributes:
        number: 0 is the start.
        skipped: slots that passed while the poll before was still running.
    """

    number: int
    skipped: int


def next_slot(last: int, elapsed_ns: int, interval_ns: int) -> Slot:
    """The slot that comes next; one that has passed already is skipped, not caught up with.

    Args:
        last: number of the slot that was polled last.
        elapsed_ns: since the start, nanoseconds.
        interval_ns: between two slots, nanoseconds.
    """
    # A slot that is due at this very moment has not passed.
    number = max(last + 1, -(-elapsed_ns // interval_ns))
    return Slot(number, number - last - 1)
