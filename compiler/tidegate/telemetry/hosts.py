"""Rows of a host's health on their way into host_health."""

from typing import Final

import numpy as np

from tidegate.schemas.hosts import HOSTS, PRESSURE, SCHEDSTAT, STAT
from tidegate.schemas.records import Records
from tidegate.telemetry.record import Column, RecordKind, at_most, field, is_name

_DAY_US: Final = 86_400 * 10**6
_MAX_CPUS: Final = 8192  # CONFIG_NR_CPUS of MAXSMP, arch/x86/Kconfig


def _observed_us(rows: Records) -> Column:
    """The time that `cpu_stalled_us` is of: a host without PSI was not observed."""
    return np.where(rows["measured"] & PRESSURE, rows["observed_us"], 0).astype(np.uint64)


HEALTH: Final = RecordKind(
    HOSTS,
    "host_health",
    "observed_at_ns",
    {
        "POP is not a name": is_name("pop"),
        "host is not a name": is_name("host"),
        "interval of nothing or of more than a day": lambda rows: (
            (rows["observed_us"] > 0) & (rows["observed_us"] <= _DAY_US)
        ),
        "stalled for longer than observed": lambda rows: rows["cpu_stalled_us"] <= rows["observed_us"],
        "unknown counters": at_most("measured", PRESSURE | STAT | SCHEDSTAT),
        "more CPUs than there can be": at_most("cpus", _MAX_CPUS),
    },
    {
        "observed_at": field("observed_at_ns"),
        "pop": field("pop"),
        "host": field("host"),
        "cpu_stalled_us": field("cpu_stalled_us"),
        "observed_us": _observed_us,
        "interval_us": field("observed_us"),
        "measured": field("measured", np.uint8),
        "cpus": field("cpus"),
        "cpu_stalled_avg10": field("cpu_stalled_avg10"),
        "cpu_stalled_avg60": field("cpu_stalled_avg60"),
        "cpu_stalled_avg300": field("cpu_stalled_avg300"),
        "cpu_time_us": field("cpu_time_us"),
        "idle_us": field("idle_us"),
        "steal_us": field("steal_us"),
        "irq_us": field("irq_us"),
        "softirq_us": field("softirq_us"),
        "run_delay_us": field("run_delay_us"),
    },
)
