"""A route as the kernel has it, apart from how netlink writes it.

What a clone must keep and the agent has no use for (gateways, encapsulations, metrics) stays in the kernel's own
bytes, so that nothing is lost by reading and writing it: a locked MTU stays locked.
"""

from dataclasses import dataclass
from typing import Final

from .prefix import Prefix

# The owner that a route names. Not taken by linux/rtnetlink.h; /etc/iproute2/rt_protos.d/ may give it a word.
ROUTE_PROTOCOL: Final = 201

UNICAST: Final = 1  # RTN_UNICAST, linux/rtnetlink.h
TYPE_NAMES: Final = {
    1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast",
    6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw", 10: "nat",
}  # fmt: skip

Attributes = tuple[tuple[int, bytes], ...]
"""Netlink attributes as (type, payload), sorted by type."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One way on: an interface, and the gateway and encapsulation in the kernel's bytes."""

    interface: int
    attributes: Attributes
    weight: int = 1
    onlink: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """What routes have in common, as in the kernel's own struct fib_info: clones of one route share one.

    `metrics` are the TCP and path settings, by RTAX number; `hops` are the hops alive, none where `nexthop_id` names
    a nexthop object. `preference` is RFC 4191's, 0 medium, 1 high, -1 low. `narrow`: for one TOS or one source
    prefix only.
    """

    protocol: int
    type: int
    scope: int
    hops: tuple[Hop, ...]
    nexthop_id: int | None = None
    source: bytes | None = None
    metrics: Attributes = ()
    preference: int = 0
    narrow: bool = False

    @property
    def usable(self) -> bool:
        """Whether the kernel would take it for any connection: not narrow, and a hop alive where it has hops."""
        return not self.narrow and (self.type != UNICAST or bool(self.hops) or self.nexthop_id is not None)


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the main table; `priority` is what `ip` calls metric."""

    prefix: Prefix
    priority: int
    path: Path

    @property
    def own(self) -> bool:
        """Whether this agent installed it."""
        return self.path.protocol == ROUTE_PROTOCOL and not self.path.narrow
