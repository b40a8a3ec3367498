"""Routes in the kernel's bytes: rtnetlink(7) messages written and read, no I/O.

Own code rather than `ip` or pyroute2, for what these lose: `ip -json` (6.1) leaves out which metrics are locked,
and pyroute2 0.9 does not know RTA_NH_ID, so that a clone would not follow its nexthop object.
Constants: linux/netlink.h, linux/rtnetlink.h.
"""

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from .prefix import prefix_of
from .route import Attributes, Hop, Path, Route

Change = Literal["add", "replace", "remove"]

NLMSG_ERROR: Final = 2
NLMSG_DONE: Final = 3
RTM_NEWROUTE: Final = 24
RTM_DELROUTE: Final = 25
RTM_GETROUTE: Final = 26
RTM_NEWRULE: Final = 32
RTM_GETRULE: Final = 34
NLM_F_REQUEST: Final = 0x1
NLM_F_ACK: Final = 0x4
NLM_F_DUMP_INTR: Final = 0x10
NLM_F_CAPPED: Final = 0x100
NLM_F_ACK_TLVS: Final = 0x200
NLM_F_DUMP: Final = 0x300
NLM_F_REPLACE: Final = 0x100
NLM_F_EXCL: Final = 0x200
NLM_F_CREATE: Final = 0x400
NLMSGERR_ATTR_MSG: Final = 1

RT_TABLE_MAIN: Final = 254
RT_TABLES_BUILT_IN: Final = {0, 253, 254, 255}  # unspec (no table), default, main, local
RTM_F_CLONED: Final = 0x200
RTNH_F_DEAD: Final = 1
RTNH_F_ONLINK: Final = 4
RTA_DST: Final = 1
RTA_OIF: Final = 4
RTA_GATEWAY: Final = 5
RTA_PRIORITY: Final = 6
RTA_PREFSRC: Final = 7
RTA_METRICS: Final = 8
RTA_MULTIPATH: Final = 9
RTA_FLOW: Final = 11
RTA_CACHEINFO: Final = 12
RTA_TABLE: Final = 15  # and FRA_TABLE in a rule
RTA_VIA: Final = 18
RTA_PREF: Final = 20
RTA_ENCAP_TYPE: Final = 21
RTA_ENCAP: Final = 22
RTA_NH_ID: Final = 30
HOP_ATTRIBUTES: Final = {RTA_GATEWAY, RTA_FLOW, RTA_VIA, RTA_ENCAP_TYPE, RTA_ENCAP}

HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
# family, dst_len, src_len, tos, table, protocol, scope, type, flags
RTMSG: Final = struct.Struct("=BBBBBBBBI")
RTNEXTHOP: Final = struct.Struct("=HBBi")  # length, flags, hops (weight - 1), interface
ATTRIBUTE: Final = struct.Struct("=HH")  # length, type
U32: Final = struct.Struct("=I")
U32_ATTRIBUTE_BYTES: Final = ATTRIBUTE.size + U32.size
# By bytes of an address: its family, and what of a request differs between routes of one path, up to RTA_PRIORITY.
REQUESTS: Final = {
    4: (socket.AF_INET, struct.Struct("=IHHII BBBBBBBBI HH4s HHI")),
    16: (socket.AF_INET6, struct.Struct("=IHHII BBBBBBBBI HH16s HHI")),
}
ROUTES_REMEMBERED: Final = 1 << 14  # 6 MB at most: routes that are read again and again are parsed once
PATHS_REMEMBERED: Final = 1 << 10
TYPE_MASK: Final = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER

FLAGS: Final[dict[Change, int]] = {
    # EXCL: a route that someone else put there meanwhile makes ours fail; it is never overwritten.
    "add": NLM_F_CREATE | NLM_F_EXCL,
    "replace": NLM_F_CREATE | NLM_F_REPLACE,
    "remove": 0,
}


@dataclass(frozen=True, slots=True)
class Message:
    """One netlink message; `body` is what follows its header."""

    type: int
    flags: int
    sequence: int
    body: bytes


def messages(datagram: bytes) -> Iterator[Message]:
    """Split a datagram into its messages.

    Raises:
        ValueError: a length does not fit.
    """
    return (message_at(datagram, start) for start in message_starts(datagram))


def message_starts(datagram: bytes) -> Iterator[int]:
    """Where the messages of a datagram begin.

    Raises:
        ValueError: a length does not fit.
    """
    offset = 0
    while offset < len(datagram):
        left = len(datagram) - offset
        if left < HEADER.size:
            raise ValueError(f"a netlink message's header in {left} bytes")
        (length,) = U32.unpack_from(datagram, offset)
        if not HEADER.size <= length <= left:
            raise ValueError(f"a netlink message of {length} bytes in {left}")
        yield offset
        offset += _aligned(length)


def message_at(datagram: bytes, start: int) -> Message:
    """The message that begins at one of `message_starts`."""
    length, kind, flags, sequence, _port = HEADER.unpack_from(datagram, start)
    return Message(kind, flags, sequence, datagram[start + HEADER.size : start + length])


def dump_request(kind: int, family: int, sequence: int, protocol: int = 0) -> bytes:
    """Ask for the routes (RTM_GETROUTE) of the main table, or for the rules (RTM_GETRULE), of one family.

    Args:
        kind: RTM_GETROUTE or RTM_GETRULE.
        family: AF_INET or AF_INET6.
        sequence: comes back with the answers.
        protocol: only routes of this owner; 0: everyone's.
    """
    table = RT_TABLE_MAIN if kind == RTM_GETROUTE else 0
    body = RTMSG.pack(family, 0, 0, 0, table, protocol, 0, 0, 0)
    return _message(kind, NLM_F_REQUEST | NLM_F_DUMP, sequence, body)


def change_requests(changes: Iterable[tuple[Change, Route]]) -> list[bytes]:
    """Ask to add, replace or remove routes of the main table; a removal names key, type and owner.

    Each bears its place in the list as its sequence number. Only the last asks to be acknowledged: the kernel
    answers in order, and answers what failed unasked (netlink_rcv_skb in net/netlink/af_netlink.c).
    """
    requests: list[bytes] = []
    tails: dict[int, bytes] = {}  # routes share paths, and to write one is slow
    ordered = list(changes)
    for sequence, (change, route) in enumerate(ordered):
        tail = b""
        if change != "remove":
            known = tails.get(id(route.path))
            tail = tails[id(route.path)] = _join(_path(route.path)) if known is None else known
        flags = NLM_F_REQUEST | FLAGS[change] | (NLM_F_ACK if sequence == len(ordered) - 1 else 0)
        requests.append(_change_request(change, route, flags, sequence, tail))
    return requests


def _change_request(change: Change, route: Route, flags: int, sequence: int, tail: bytes) -> bytes:
    prefix, path = route.prefix, route.path
    address = prefix.network_address.packed
    onlink = change != "remove" and len(path.hops) == 1 and path.hops[0].onlink
    family, request = REQUESTS[len(address)]
    return (
        request.pack(
            request.size + len(tail), RTM_DELROUTE if change == "remove" else RTM_NEWROUTE, flags, sequence, 0,
            family, prefix.prefixlen, 0, 0, RT_TABLE_MAIN, path.protocol, path.scope, path.type,
            RTNH_F_ONLINK if onlink else 0,
            ATTRIBUTE.size + len(address), RTA_DST, address,
            U32_ATTRIBUTE_BYTES, RTA_PRIORITY, route.priority,
        )
        + tail
    )  # fmt: skip


def route_of(message: Message, family: int) -> Route | None:
    """The route that a dump's message describes; None for other tables, families and cached routes."""
    return _route(message.body, family)


@lru_cache(maxsize=ROUTES_REMEMBERED)
def _route(body: bytes, family: int) -> Route | None:
    its_family, length, source_length, tos, table, protocol, scope, kind, flags = RTMSG.unpack_from(body)
    attributes = dict(_split(body[RTMSG.size :]))
    if RTA_TABLE in attributes:
        (table,) = U32.unpack(attributes.pop(RTA_TABLE))
    if its_family != family or table != RT_TABLE_MAIN or flags & RTM_F_CLONED:
        return None
    address = attributes.pop(RTA_DST, bytes(4 if family == socket.AF_INET else 16))
    (priority,) = U32.unpack(attributes.pop(RTA_PRIORITY, bytes(U32.size)))
    attributes.pop(RTA_CACHEINFO, None)  # counts down
    narrow = bool(tos or source_length)
    path = _path_of(tuple(attributes.items()), protocol, kind, scope, flags, narrow)
    return Route(prefix_of(address, length), priority, path)


@lru_cache(maxsize=PATHS_REMEMBERED)
def _path_of(pairs: Attributes, protocol: int, kind: int, scope: int, flags: int, narrow: bool) -> Path:
    attributes = dict(pairs)
    nexthop_id = U32.unpack(attributes[RTA_NH_ID])[0] if RTA_NH_ID in attributes else None
    hops = tuple(_hops(attributes, flags)) if nexthop_id is None else ()
    preference = attributes.get(RTA_PREF, b"\0")[0]
    return Path(
        protocol=protocol,
        type=kind,
        scope=scope,
        hops=hops
        if len(hops) > 1
        else tuple(replace(hop, weight=1) for hop in hops),  # a weight among one is none
        nexthop_id=nexthop_id,
        source=attributes.get(RTA_PREFSRC),
        metrics=tuple(sorted(_split(attributes.get(RTA_METRICS, b"")))),
        preference={1: 1, 3: -1}.get(preference, 0),  # ICMPV6_ROUTER_PREF_HIGH, _LOW
        narrow=narrow,
    )


def rule_table(message: Message) -> int | None:
    """The table that a policy rule leads to, None where it is one that every kernel has."""
    table = RTMSG.unpack_from(message.body)[4]
    attributes = dict(_split(message.body[RTMSG.size :]))
    if RTA_TABLE in attributes:
        (table,) = U32.unpack(attributes[RTA_TABLE])
    return None if table in RT_TABLES_BUILT_IN else int(table)


def error_of(message: Message) -> tuple[int, str]:
    """The errno of an NLMSG_ERROR, 0 for an acknowledgement, and the kernel's words, if it has any."""
    (code,) = struct.unpack_from("=i", message.body)
    text = ""
    if message.flags & NLM_F_ACK_TLVS:
        length = HEADER.size
        if not message.flags & NLM_F_CAPPED:
            (length,) = U32.unpack_from(message.body, 4)
        words = dict(_split(message.body[4 + _aligned(length) :])).get(NLMSGERR_ATTR_MSG, b"")
        text = words.rstrip(b"\0").decode("utf-8", "replace")
    return -code, text


def _hops(attributes: Mapping[int, bytes], flags: int) -> Iterator[Hop]:
    if RTA_MULTIPATH not in attributes:
        if RTA_OIF in attributes and not flags & RTNH_F_DEAD:
            yield _hop(U32.unpack(attributes[RTA_OIF])[0], attributes, 0, flags)
        return
    hops = attributes[RTA_MULTIPATH]
    while hops:
        length, hop_flags, extra_weight, interface = RTNEXTHOP.unpack_from(hops)
        if not hop_flags & RTNH_F_DEAD:
            yield _hop(interface, dict(_split(hops[RTNEXTHOP.size : length])), extra_weight, hop_flags)
        hops = hops[_aligned(length) :]


def _hop(interface: int, attributes: Mapping[int, bytes], extra_weight: int, flags: int) -> Hop:
    kept = sorted((kind, payload) for kind, payload in attributes.items() if kind in HOP_ATTRIBUTES)
    return Hop(interface, tuple(kept), extra_weight + 1, bool(flags & RTNH_F_ONLINK))


def _path(path: Path) -> Iterator[tuple[int, bytes]]:
    if path.source:
        yield RTA_PREFSRC, path.source
    if path.metrics:
        yield RTA_METRICS, _join(path.metrics)
    if path.nexthop_id is not None:
        yield RTA_NH_ID, U32.pack(path.nexthop_id)
    elif len(path.hops) == 1:
        yield RTA_OIF, U32.pack(path.hops[0].interface)
        yield from path.hops[0].attributes
    else:
        yield RTA_MULTIPATH, b"".join(_member(hop) for hop in path.hops)


def _member(hop: Hop) -> bytes:
    attributes = _join(hop.attributes)
    flags = RTNH_F_ONLINK if hop.onlink else 0
    return RTNEXTHOP.pack(RTNEXTHOP.size + len(attributes), flags, hop.weight - 1, hop.interface) + attributes


def _message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(body), kind, flags, sequence, 0) + body


def _split(payload: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + ATTRIBUTE.size <= len(payload):
        length, kind = ATTRIBUTE.unpack_from(payload, offset)
        if not ATTRIBUTE.size <= length <= len(payload) - offset:
            raise ValueError(f"a netlink attribute of {length} bytes at {offset} of {len(payload)}")
        yield kind & TYPE_MASK, payload[offset + ATTRIBUTE.size : offset + length]
        offset += _aligned(length)


def _join(attributes: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(
        ATTRIBUTE.pack(ATTRIBUTE.size + len(payload), kind) + payload + bytes(-len(payload) % 4)
        for kind, payload in attributes
    )


def _aligned(length: int) -> int:
    return (length + 3) & ~3
