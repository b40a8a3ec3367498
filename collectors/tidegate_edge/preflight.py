"""What a collector needs of its host, looked at one by one."""

import ctypes
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import Failure
from .fleet import read_fleet
from .sockets.netlink import CONNECTED
from .sockets.reader import BPF, NETLINK, open_reader

OK: Final = "ok"
DEGRADED: Final = "degraded"
MISSING: Final = "missing"

# tcp_info has had all that a row holds since 5.4: tcpi_snd_wnd is its youngest field (include/uapi/linux/tcp.h).
OLDEST_KERNEL: Final = (5, 4)
# Below it a BPF iterator can't give a socket its cookie: docs/collector.md, "Readers".
OLDEST_BPF_KERNEL: Final = (5, 12)

SPOOL_FREE: Final = 1 << 30

# include/uapi/linux/capability.h: bit, and what it is for.
_CAPABILITIES: Final = {
    "CAP_NET_ADMIN": (12, "without it the kernel leaves out the algorithm's own state (bbr)"),
    "CAP_SYS_PTRACE": (19, "without it namespaces of other users' processes are not found by `--netns all`"),
    "CAP_SYS_ADMIN": (21, "without it no other network namespace can be entered"),
    "CAP_PERFMON": (38, "without it the BPF reader can't be loaded"),
    "CAP_BPF": (39, "without it the BPF reader can't be loaded"),
}
_STATUS: Final = Path("/proc/self/status")
_ALGORITHMS: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_TIME_ERROR: Final = (
    5  # include/uapi/linux/timex.h: what adjtimex(2) returns where the clock is not synchronised
)
_TIMEX_LENGTH: Final = 512  # more than a struct timex of any architecture


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    Attributes:
        name: of the thing.
        state: `ok`, `degraded` where the collector works with less, or `missing`.
        detail: what was found.
        way_out: what to do, empty where nothing is to be done.
    """

    name: str
    state: str
    detail: str
    way_out: str = ""


def look(fleet: Path | None, spool: Path | None) -> Iterator[Finding]:
    """Look at everything; nothing is changed, and nothing raises.

    Args:
        fleet: fleet.json, if one is to be used.
        spool: directory of the spool, if one is to be used.
    """
    yield _kernel()
    yield from _capabilities()
    yield _reader(NETLINK, MISSING)
    yield _reader(BPF, DEGRADED)
    yield _algorithms()
    yield _clock()
    if fleet is not None:
        yield _guarded("fleet", lambda: _fleet(fleet))
    if spool is not None:
        yield _guarded("spool", lambda: _spool(spool))


def version_of(release: str) -> tuple[int, int]:
    """Major and minor of a kernel's release, `6.1.0-13-amd64` is (6, 1); zeros where it tells none."""
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _kernel() -> Finding:
    release = platform.release()
    version = version_of(release)
    if version < OLDEST_KERNEL:
        return Finding(
            "kernel", DEGRADED, release, "fields that it does not know are zero; 5.4 knows them all"
        )
    if version < OLDEST_BPF_KERNEL:
        return Finding("kernel", DEGRADED, release, "the BPF reader needs 5.12; netlink reads the same rows")
    return Finding("kernel", OK, release)


def _capabilities() -> Iterator[Finding]:
    effective = next(
        int(line.split()[1], 16) for line in _STATUS.read_text().splitlines() if line.startswith("CapEff:")
    )
    for name, (bit, why) in _CAPABILITIES.items():
        if effective >> bit & 1:
            yield Finding(name, OK, "effective")
        else:
            way_out = f"AmbientCapabilities={name} in the service, or run as root"
            yield Finding(name, DEGRADED, f"not effective: {why}", way_out)


def _reader(name: str, otherwise: str) -> Finding:
    try:
        open_reader(name, None, states=CONNECTED, tell=lambda _line: None).close()
    except Failure as why:
        return Finding(f"reader {name}", otherwise, why.message, why.help or "")
    return Finding(f"reader {name}", OK, "opened and closed again")


def _algorithms() -> Finding:
    try:
        names = _ALGORITHMS.read_text().split()
    except OSError as error:
        return Finding("algorithms", DEGRADED, f"{_ALGORITHMS}: {error.strerror}")
    if "bbr" in names:
        return Finding("algorithms", OK, ", ".join(names))
    return Finding("algorithms", DEGRADED, ", ".join(names), "`modprobe tcp_bbr`, where policies steer to it")


def _clock() -> Finding:
    libc = ctypes.CDLL(None, use_errno=True)
    state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_LENGTH))  # all zero: asks, and sets nothing
    if state < 0:
        return Finding("clock", DEGRADED, f"adjtimex: {os.strerror(ctypes.get_errno())}")
    if state == _TIME_ERROR:
        return Finding(
            "clock", DEGRADED, "the kernel's clock is not synchronised", "start chrony or systemd-timesyncd"
        )
    return Finding("clock", OK, "synchronised")


def _fleet(path: Path) -> Finding:
    fleet = read_fleet(path)
    return Finding("fleet", OK, f"{path}: {len(fleet.own)} POPs")


def _spool(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        way_out = f"`install -d -m 0700 {path}` for the collector's user"
        return Finding("spool", MISSING, f"{path}: no directory to write to", way_out)
    free = shutil.disk_usage(path).free
    state = OK if free >= SPOOL_FREE else DEGRADED
    way_out = "" if state == OK else "make room, or lower `--spool-mib`: a full disk drops rows"
    return Finding("spool", state, f"{path}: {free >> 20} MiB free", way_out)


def _guarded(name: str, finding: Callable[[], Finding]) -> Finding:
    try:
        return finding()
    except Failure as why:
        return Finding(name, MISSING, why.message, why.help or "")
    except OSError as error:
        return Finding(name, MISSING, str(error))
