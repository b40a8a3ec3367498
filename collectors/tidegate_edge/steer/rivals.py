"""What else on this host decides about its TCP connections, what that breaks, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .bpf.backend import PINS
from .surroundings import Surroundings, read_surroundings

SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Rival:
    """One that was found: by what, what it breaks, and the way out."""

    name: str
    found: str
    breaks: str
    what_to_do: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """A row of the table; `found` says by what such a rival shows, None where there is none."""

    name: str
    found: Callable[[Surroundings], str | None]
    breaks: str
    what_to_do: str


def find_rivals(root: Path = Path("/"), pins: Path = PINS) -> tuple[Rival, ...]:
    """The rivals on this host, in the order of the table; what this process may not see it does not report.

    Args:
        root: where the host's file system begins.
        pins: where the agent pins its own program.
    """
    return rivals_of(read_surroundings(root, pins))


def rivals_of(surroundings: Surroundings) -> tuple[Rival, ...]:
    """The rivals that show in what was read."""
    return tuple(
        Rival(kind.name, found, kind.breaks, kind.what_to_do)
        for kind in KINDS
        if (found := kind.found(surroundings)) is not None
    )


def _bpftune(read: Surroundings) -> str | None:
    if "bpftune" in read.processes:
        return "a process `bpftune`"
    return _path(read, "sys/fs/bpf/bpftune")


def _sock_ops(read: Surroundings) -> str | None:
    if not read.foreign_sock_ops:
        return None
    return f"program {_some([str(each) for each in read.foreign_sock_ops])} at the root cgroup"


def _foreign_routes(read: Surroundings) -> str | None:
    return _networkd(read, "ManageForeignRoutes")


def _foreign_nexthops(read: Surroundings) -> str | None:
    return _networkd(read, "ManageForeignNextHops") if read.nexthop_objects else None


def _network_manager(read: Surroundings) -> str | None:
    return "a process `NetworkManager`" if "NetworkManager" in read.processes else None


def _cilium(read: Surroundings) -> str | None:
    return _path(read, "sys/fs/bpf/tc/globals/cilium_throttle")


def _locked(read: Surroundings) -> str | None:
    if not read.locked:
        return None
    return f"the route to {_some([str(each) for each in read.locked])}"


def _saved_thresholds(read: Surroundings) -> str | None:
    saves = ("tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save")
    if any(read.sysctls.get(name) != "0" for name in saves):
        return None
    return " and ".join(f"net.ipv4.{name} = 0" for name in saves)


def _networkd(read: Surroundings, setting: str) -> str | None:
    if "systemd-networkd" not in read.processes:
        return None
    value = read.networkd.get(setting)
    # systemd's words for false, parse_boolean() in src/basic/parse-util.c; every other value is true or the default.
    if value is not None and value.lower() in {"0", "no", "n", "false", "f", "off"}:
        return None
    return f"systemd-networkd runs with {setting}={value or 'yes, its default'}"


def _path(read: Surroundings, name: str) -> str | None:
    return f"/{name}" if name in read.paths else None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


KINDS: Final = (
    _Kind(
        "bpftune",
        _bpftune,
        "its tuner of connections chooses an algorithm for each remote host, over the policy's",
        "`systemctl disable --now bpftune`; the policy then decides alone",
    ),
    _Kind(
        "another sock_ops program",
        _sock_ops,
        "it sees every connection that the agent's program does, and the one that runs last sets the window and "
        "the algorithm",
        "`bpftool cgroup tree` names its owner: detach it, or steer by routes with `--backend routes`",
    ),
    _Kind(
        "systemd-networkd, foreign routes",
        _foreign_routes,
        "it removes the agent's routes when it starts; they are missing until the agent puts them back",
        "set `ManageForeignRoutes=no` in [Network] of /etc/systemd/networkd.conf.d/tidegate.conf, and restart it",
    ),
    _Kind(
        "systemd-networkd, foreign nexthop objects",
        _foreign_nexthops,
        "it removes nexthop objects that it did not make, and the routes that use them go with them",
        "set `ManageForeignNextHops=no` in [Network] of /etc/systemd/networkd.conf.d/tidegate.conf, and restart it",
    ),
    _Kind(
        "NetworkManager",
        _network_manager,
        "it may remove the agent's routes from a device whose connection it activates anew; they are missing until "
        "the agent puts them back",
        "steer by BPF, or take the uplinks from it with `unmanaged-devices=` in NetworkManager.conf",
    ),
    _Kind(
        "Cilium's bandwidth manager",
        _cilium,
        "it paces pods by its own qdisc, and with `enable-bbr` makes bbr the default algorithm of the host",
        "leave `default_congestion_control` null, and turn `enable-bbr` off; measure pods apart from the host",
    ),
    _Kind(
        "congctl lock",
        _locked,
        "connections there keep the route's algorithm: neither the application nor the agent's BPF program changes "
        "it, and a clone of the route is locked too",
        "`ip route change` the route without `lock`, or leave its prefixes out of the policy",
    ),
    _Kind(
        "slow-start thresholds kept from earlier connections",
        _saved_thresholds,
        "a new connection to a known address leaves slow start where the last one met loss, whatever its initial "
        "window",
        "`sysctl net.ipv4.tcp_no_ssthresh_metrics_save=1`, the kernel's default since Linux 5.6",
    ),
)
