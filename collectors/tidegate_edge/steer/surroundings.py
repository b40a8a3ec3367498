"""What else is at work on this host, as far as a process may see it: read once, judged by `rivals`."""

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure

from .bpf.backend import PINS
from .bpf.cgroup import mounts
from .kernel import read_some_routes
from .prefix import Prefix
from .route import Route
from .routes import RTAX_CC_ALGO
from .sock_ops import attached, pinned_programs

# Names of processes as the kernel cuts them, TASK_COMM_LEN of linux/sched.h less the final zero.
PROCESSES: Final = {name[:15]: name for name in ("bpftune", "systemd-networkd", "NetworkManager")}
PATHS: Final = ("sys/fs/bpf/bpftune", "sys/fs/bpf/tc/globals/cilium_throttle")
SYSCTLS: Final = ("tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save")
# networkd.conf(5): of the main file and of drop-ins of one name the first counts; of settings the last.
NETWORKD: Final = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd")
RTAX_LOCK: Final = 1  # linux/rtnetlink.h: a bit for each metric that is locked
FILE_BYTES: Final = 1 << 16
ROUTES_READ: Final = (
    1 << 14
)  # of a full table of the Internet, to read all takes ten seconds and half a gigabyte


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was found.

    Attributes:
        processes: those of interest that run, by their full names.
        paths: those of interest that are there, without the first slash.
        networkd: settings of the section [Network] of networkd.conf and its drop-ins.
        sysctls: of /proc/sys/net/ipv4, by name.
        foreign_sock_ops: numbers of sock_ops programs at the root cgroup that are not the agent's.
        locked: prefixes of routes, not the agent's, whose algorithm is locked.
        nexthop_objects: whether routes use nexthop objects.
    """

    processes: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    networkd: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    foreign_sock_ops: tuple[int, ...] = ()
    locked: tuple[Prefix, ...] = ()
    nexthop_objects: bool = False


def read_surroundings(root: Path = Path("/"), pins: Path = PINS) -> Surroundings:
    """Read what can be read; what is missing or forbidden counts as not there.

    Args:
        root: where the host's file system begins. Routes are those of this network namespace.
        pins: where the agent pins its own program.
    """
    routes = _foreign_routes()
    return Surroundings(
        processes=_processes(root / "proc"),
        paths=frozenset(path for path in PATHS if _exists(root / path)),
        networkd=_networkd(root),
        sysctls={name: _text(root / "proc/sys/net/ipv4" / name).strip() for name in SYSCTLS},
        foreign_sock_ops=_sock_ops(root, pins),
        locked=tuple(route.prefix for route in routes if _algorithm_locked(route)),
        nexthop_objects=any(route.path.nexthop_id is not None for route in routes),
    )


def _foreign_routes() -> list[Route]:
    try:
        return [route for route in read_some_routes(ROUTES_READ) if not route.own]
    except Failure:
        return []


def _algorithm_locked(route: Route) -> bool:
    locks = dict(route.path.metrics).get(RTAX_LOCK, bytes(4))
    return bool(struct.unpack("=I", locks)[0] >> RTAX_CC_ALGO & 1)


def _processes(proc: Path) -> frozenset[str]:
    names = (_text(each / "comm").rstrip("\n") for each in proc.glob("[0-9]*"))
    return frozenset(PROCESSES[name] for name in names if name in PROCESSES)


def _networkd(root: Path) -> dict[str, str]:
    main = [root / each / "networkd.conf" for each in NETWORKD]
    drop_ins: dict[str, Path] = {}
    for directory in reversed(NETWORKD):
        drop_ins |= {path.name: path for path in (root / directory / "networkd.conf.d").glob("*.conf")}
    found: dict[str, str] = {}
    for path in [*(each for each in main if _exists(each))][:1] + [
        drop_ins[name] for name in sorted(drop_ins)
    ]:
        found |= _network_section(_text(path))
    return found


def _network_section(text: str) -> dict[str, str]:
    section, found = "", {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line
        elif section == "[Network]" and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            found[name.strip()] = value.strip()
    return found


def _sock_ops(root: Path, pins: Path) -> tuple[int, ...]:
    whole, _, _ = _text(root / "proc/self/mountinfo").rpartition("\n")
    for mount in mounts(whole.splitlines()):
        if mount.kind == "cgroup2" and mount.root == "/":
            own = pinned_programs(_below(root, pins))
            return tuple(each for each in attached(_below(root, mount.point)) if each not in own)
    return ()


def _below(root: Path, path: Path) -> Path:
    return root / str(path).lstrip("/")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory on the way may not be searched
        return False


def _text(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(FILE_BYTES).decode(errors="replace")
    return ""
