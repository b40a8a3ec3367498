"""Two readings of the kernel's counters as a row: the differences between them."""

from .health_counters import Counters
from .schemas.hosts import HOSTS, PRESSURE, SCHEDSTAT, STAT
from .schemas.records import Records

_CPU_TIMES = {
    "cpu_time_us": "total",
    "idle_us": "idle",
    "steal_us": "steal",
    "irq_us": "irq",
    "softirq_us": "softirq",
}


def make_row(
    pop: str, host: str, before: Counters, after: Counters, *, observed_us: int, observed_at_ns: int
) -> Records:
    """One row. What one of the two readings lacks is zero, and its bit of `measured` too.

    A counter that went back counts as one that stood still: idle and stolen time do so at times.

    Args:
        pop: name, at most 16 bytes of UTF-8.
        host: name, at most 32 bytes of UTF-8.
        before: at the interval's begin.
        after: at its end.
        observed_us: between the two, microseconds of a clock that is never set.
        observed_at_ns: Unix time of `after`, nanoseconds.
    """
    row = HOSTS.new(1)
    row["pop"], row["host"] = pop.encode(), host.encode()
    row["observed_at_ns"], row["observed_us"] = observed_at_ns, observed_us
    measured = 0
    if before.pressure and after.pressure:
        measured |= PRESSURE
        # The kernel brings the total up to date every 2 s (kernel/sched/psi.c, PSI_FREQ): it may be of before.
        stalled = after.pressure.stalled_us - before.pressure.stalled_us
        row["cpu_stalled_us"] = min(max(stalled, 0), observed_us)
        for seconds, average in zip((10, 60, 300), after.pressure.averages, strict=True):
            row[f"cpu_stalled_avg{seconds}"] = average
    if before.cpu and after.cpu:
        measured |= STAT
        row["cpus"] = after.cpu.cpus
        for name, counter in _CPU_TIMES.items():
            row[name] = max(getattr(after.cpu, counter) - getattr(before.cpu, counter), 0)
    if before.run_delay_us is not None and after.run_delay_us is not None:
        measured |= SCHEDSTAT
        row["run_delay_us"] = max(after.run_delay_us - before.run_delay_us, 0)
    row["measured"] = measured
    return row
