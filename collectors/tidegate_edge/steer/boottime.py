"""Time that no clock change moves and that goes on while a host sleeps; it starts anew with each boot."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of one boot.

    Attributes:
        boot: the kernel's boot_id.
        since_ns: CLOCK_BOOTTIME, nanoseconds.
    """

    boot: str
    since_ns: int

    def after(self, nanoseconds: int) -> "Moment":
        """So much later in the same boot."""
        return Moment(self.boot, self.since_ns + nanoseconds)

    def left_ns(self, now: "Moment") -> int:
        """Nanoseconds from `now` until then; 0 where it is past, or of another boot."""
        return max(self.since_ns - now.since_ns, 0) if self.boot == now.boot else 0


def this_moment() -> Moment:
    """Now."""
    return Moment(boot_id(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def boot_id() -> str:
    """The kernel's name of this boot."""
    return BOOT_ID.read_text(encoding="ascii").strip()
