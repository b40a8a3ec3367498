"""Whether a host was short of CPU between two readings of its counters. Pure."""

from dataclasses import dataclass
from typing import Final

from tidegate_edge.health_counters import Counters

PPM: Final = 1_000_000
# The bounds of the metric `bbr_starved`: dsl/SPEC.md, section 5.
STALLED_PPM: Final = 200_000
STOLEN_PPM: Final = 50_000


@dataclass(frozen=True, slots=True)
class Pressed:
    """Shares of an interval, parts per million; None: this kernel does not tell.

    Attributes:
        stalled_ppm: of the time, in which some task waited for a CPU (PSI); of a kernel without PSI, time that tasks
            waited on run queues over the time of all CPUs.
        stolen_ppm: of the time of all CPUs, in which the hypervisor ran something else.
    """

    stalled_ppm: int | None
    stolen_ppm: int | None

    def beyond(self, part: int = 1, of: int = 1) -> bool:
        """Whether one of the shares reaches its bound, or part/of of it."""
        bounds = ((self.stalled_ppm, STALLED_PPM), (self.stolen_ppm, STOLEN_PPM))
        return any(share is not None and share * of >= bound * part for share, bound in bounds)


def pressed(before: Counters, after: Counters, elapsed_us: int) -> Pressed:
    """What two readings say of the time between them; a counter that went back stood still.

    Args:
        before: the first reading.
        after: the second.
        elapsed_us: between them, above 0.
    """
    stalled = stolen = None
    if before.pressure and after.pressure:
        stalled = _share(after.pressure.stalled_us - before.pressure.stalled_us, elapsed_us)
    elif before.run_delay_us is not None and after.run_delay_us is not None and after.cpu:
        stalled = _share(after.run_delay_us - before.run_delay_us, elapsed_us * after.cpu.cpus)
    if before.cpu and after.cpu:
        stolen = _share(after.cpu.steal - before.cpu.steal, after.cpu.total - before.cpu.total)
    return Pressed(stalled, stolen)


def _share(part_us: int, whole_us: int) -> int | None:
    return max(part_us, 0) * PPM // whole_us if whole_us > 0 else None
