"""What the kernel counts of waiting for CPUs, read from /proc. Pure but for `read_counters`."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from .errors import MISSING_PART, Failure

_T = TypeVar("_T")

_US: Final = 1_000_000
_MAX_BYTES: Final = 1 << 22  # /proc/stat of a thousand CPUs and their interrupts

# Documentation/accounting/psi.rst
_SOME: Final = re.compile(
    rb"^some avg10=(\d+)\.(\d\d) avg60=(\d+)\.(\d\d) avg300=(\d+)\.(\d\d) total=(\d+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Pressure:
    """/proc/pressure/cpu, the line `some`.

    Attributes:
        stalled_us: time since boot in which at least one task waited for a CPU.
        averages: shares over the last 10, 60 and 300 s, hundredths of a per cent.
    """

    stalled_us: int
    averages: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """/proc/stat: microseconds since boot, summed over all CPUs.

    Attributes:
        cpus: online.
        total: all that follows, user and system time too.
        idle: waiting for a disk included.
        irq: in interrupt handlers.
        softirq: in their second halves, the network's among them.
        steal: the hypervisor ran something else.
    """

    cpus: int
    total: int
    idle: int
    irq: int
    softirq: int
    steal: int


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading; None is what this kernel does not tell.

    Attributes:
        pressure: None without CONFIG_PSI, or where psi=0 was given at boot.
        cpu: None where /proc/stat is hidden.
        run_delay_us: time since boot that tasks waited on run queues, over all CPUs; None without CONFIG_SCHEDSTATS.
    """

    pressure: Pressure | None
    cpu: CpuTime | None
    run_delay_us: int | None


def read_counters(proc: Path = Path("/proc")) -> Counters:
    """Read all counters.

    Raises:
        Failure: the kernel tells none of them.
    """
    counters = Counters(
        _read(proc / "pressure/cpu", parse_pressure),
        _read(proc / "stat", parse_stat),
        _read(proc / "schedstat", parse_schedstat),
    )
    if counters == Counters(None, None, None):
        raise Failure(f"{proc}: neither pressure/cpu nor stat nor schedstat", exit_code=MISSING_PART)
    return counters


def parse_pressure(text: bytes) -> Pressure | None:
    """Read /proc/pressure/cpu; None where it is not as documented."""
    if not (found := _SOME.search(text)):
        return None
    ten, sixty, three_hundred = (int(found[n]) * 100 + int(found[n + 1]) for n in (1, 3, 5))
    return Pressure(int(found[7]), (ten, sixty, three_hundred))


def parse_stat(text: bytes, ticks_per_second: int | None = None) -> CpuTime | None:
    """Read /proc/stat (proc_stat(5)); None where the line of all CPUs has no steal time.

    Args:
        text: the file.
        ticks_per_second: USER_HZ, in which it counts; by default this system's.
    """
    lines = text.splitlines()
    first = lines[0].split() if lines else []
    if len(first) < 9 or first[0] != b"cpu" or not all(word.isdigit() for word in first[1:]):
        return None
    tick = _US // (ticks_per_second or os.sysconf("SC_CLK_TCK"))
    # guest and guest_nice, which follow, are in user and nice already.
    user, nice, system, idle, iowait, irq, softirq, steal = (int(word) * tick for word in first[1:9])
    total = user + nice + system + idle + iowait + irq + softirq + steal
    cpus = sum(1 for line in lines[1:] if re.match(rb"cpu\d", line))
    return CpuTime(cpus, total, idle + iowait, irq, softirq, steal)


def parse_schedstat(text: bytes) -> int | None:
    """Microseconds that tasks waited on run queues: the eighth number of each CPU, nanoseconds.

    Documentation/scheduler/sched-stats.rst; so in versions 14 to 17 of the file. None where it is of another.
    """
    version = re.match(rb"version (\d+)\n", text)
    waited = re.findall(rb"^cpu\d+(?: \d+){7} (\d+) \d+$", text, re.MULTILINE)
    if not version or not 14 <= int(version[1]) <= 17 or not waited:
        return None
    return sum(map(int, waited)) // 1000


def _read(path: Path, parse: Callable[[bytes], _T | None]) -> _T | None:
    try:
        with path.open("rb") as file:
            return parse(file.read(_MAX_BYTES))
    except OSError:  # also of the read: /proc/pressure answers so where psi=0
        return None
