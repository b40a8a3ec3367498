"""A route in the words of `ip route`, for people and for diffs."""

import struct
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from .netlink import RTA_ENCAP_TYPE, RTA_GATEWAY, RTA_VIA
from .route import Hop, Route

# RTAX_*, linux/rtnetlink.h, in `ip`'s words; those that are only measured (rtt, rttvar, cwnd, ssthresh) with them.
METRIC_NAMES: Final = {
    1: "lock", 2: "mtu", 3: "window", 4: "rtt", 5: "rttvar", 6: "ssthresh", 7: "cwnd", 8: "advmss", 9: "reordering",
    10: "hoplimit", 11: "initcwnd", 12: "features", 13: "rto_min", 14: "initrwnd", 15: "quickack", 16: "congctl",
    17: "fastopen_no_cookie",
}  # fmt: skip
RTAX_CC_ALGO: Final = 16
VIA_HEADER_BYTES: Final = 2  # struct rtvia: the address family


def describe(route: Route, interfaces: Mapping[int, str]) -> str:
    """`198.51.100.0/24 via 192.0.2.1 dev eth0 metric 201000000 congctl bbr initcwnd 40`.

    Args:
        route: the route.
        interfaces: names by index; an index without a name shows as `if7`.
    """
    path = route.path
    words = [str(route.prefix)]
    if path.nexthop_id is not None:
        words.append(f"nhid {path.nexthop_id}")
    elif len(path.hops) == 1:
        words += _hop(path.hops[0], interfaces)
    else:
        for hop in path.hops:
            words += ["nexthop", *_hop(hop, interfaces), f"weight {hop.weight}"]
    if path.source:
        words.append(f"src {ip_address(path.source)}")
    words.append(f"metric {route.priority}")
    words += (f"{METRIC_NAMES.get(number, number)} {_value(number, value)}" for number, value in path.metrics)
    return " ".join(words)


def _hop(hop: Hop, interfaces: Mapping[int, str]) -> Iterator[str]:
    attributes = dict(hop.attributes)
    if RTA_ENCAP_TYPE in attributes:
        yield "encap"
    if RTA_GATEWAY in attributes:
        yield f"via {ip_address(attributes[RTA_GATEWAY])}"
    if RTA_VIA in attributes:
        yield f"via {ip_address(attributes[RTA_VIA][VIA_HEADER_BYTES:])}"
    yield f"dev {interfaces.get(hop.interface, f'if{hop.interface}')}"
    if hop.onlink:
        yield "onlink"


def _value(number: int, value: bytes) -> str:
    if number == RTAX_CC_ALGO:
        return value.rstrip(b"\0").decode("ascii", "replace")
    return str(struct.unpack("=I", value)[0])
