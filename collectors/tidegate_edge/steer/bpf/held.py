"""What the kernel holds of ours, and what it did with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal, TypeAlias

from tidegate_edge.libbpf.library import Needs, Unavailable
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.prefix import Prefix

__all__ = [
    "NEEDS",
    "Address",
    "Algorithm",
    "Counters",
    "Held",
    "Standing",
    "Steered",
    "Unavailable",
    "Window",
]

Address: TypeAlias = IPv4Address | IPv6Address
Window: TypeAlias = Literal["not claimed", "set", "cut after loss", "refused"]
Algorithm: TypeAlias = Literal["not claimed", "waiting", "set", "refused"]

NEEDS: Final = Needs("5.10", "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON", "`--backend routes` steers by routes")


@dataclass(frozen=True, slots=True)
class Counters:
    """Of one prefix, since its first connection under steering without a pause.

    Attributes:
        connections: that were established, either way.
        switches: of these, those whose algorithm was set, at their start or once they passed the size.
        bytes_before_switch: counted by these until then, in all.
        window_failures: initial windows that the kernel refused.
        algorithm_failures: algorithms that the kernel refused.
        storage_failures: connections that could not be followed, so that none with a size switches.
    """

    connections: int = 0
    switches: int = 0
    bytes_before_switch: int = 0
    window_failures: int = 0
    algorithm_failures: int = 0
    storage_failures: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether all is as `attach` and `apply` left it.

    Attributes:
        attached: new connections of the cgroup go by the pinned program and the pinned maps.
        variant: `queued` or `acked`, what the program counts; empty where it can't be told.
        generation: whose settings are in use; None: no settings.
        missing: what is not as it should be, a few words each.
    """

    attached: bool
    variant: str
    generation: str | None
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """All that the kernel says of ours.

    Attributes:
        attached: as in `Standing`.
        variant: as in `Standing`.
        generation: as in `Standing`.
        settings: by prefix.
        counters: of each prefix of `settings`.
        missing: as in `Standing`.
    """

    attached: bool
    variant: str
    generation: str | None
    settings: Mapping[Prefix, Settings]
    counters: Mapping[Prefix, Counters]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Steered:
    """What one open connection was given.

    Attributes:
        remote: the peer.
        remote_port: the peer's.
        local_port: of this host.
        netns: inode of the network namespace.
        cookie: the socket's, as `ss -e` shows it; 0: nobody asked for it yet.
        generation: whose settings it got.
        prefix: the one that matched.
        settings: of that prefix.
        window: what became of the initial window.
        algorithm: what became of the algorithm; `waiting`: the connection has not passed the size.
        bytes_before: counted when the algorithm was set.
    """

    remote: Address
    remote_port: int
    local_port: int
    netns: int
    cookie: int
    generation: str
    prefix: Prefix
    settings: Settings
    window: Window
    algorithm: Algorithm
    bytes_before: int
