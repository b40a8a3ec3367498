"""The main table of this network namespace: read from the kernel, and changed in it."""

import errno
import os
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .netlink import (
    NLM_F_DUMP_INTR,
    NLMSG_DONE,
    NLMSG_ERROR,
    RTM_GETROUTE,
    RTM_GETRULE,
    Change,
    Message,
    change_requests,
    dump_request,
    error_of,
    messages,
    route_of,
    rule_table,
)
from .prefix import Key, Prefix, apart
from .route import ROUTE_PROTOCOL, Route
from .sieve import VERSIONS, Sieve

FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
DATAGRAM_BYTES: Final = 1 << 18  # the kernel fills 32 KB at most
SHORT_BYTES: Final = (
    1 << 17
)  # a table of a thousand routes is parsed in the time that a sieve of many claims takes
REQUESTS_IN_FLIGHT: Final = 128  # their answers fit the default receive buffer of 208 KB many times over
TIMEOUT_SECONDS: Final = 10.0
DUMP_ATTEMPTS: Final = 5
SOL_NETLINK: Final = 270  # linux/socket.h; the options below: linux/netlink.h
NETLINK_CAP_ACK: Final = 10
NETLINK_EXT_ACK: Final = 11
NETLINK_GET_STRICT_CHK: Final = 12
PID_BITS: Final = 22
STATUS: Final = Path("/proc/self/status")
CAP_NET_ADMIN: Final = 12  # linux/capability.h
# A table that was never written to, or a kernel started without IPv6, holds no routes.
EMPTY_ERRORS: Final = {errno.ENOENT, errno.EOPNOTSUPP, errno.EAFNOSUPPORT}


@dataclass(frozen=True, slots=True)
class Rejected:
    """A change that the kernel did not make, in the kernel's words."""

    route: Route
    reason: str


def require_net_admin() -> None:
    """Refuse to start what the kernel would refuse at each step.

    Raises:
        Failure: this process has no CAP_NET_ADMIN.
    """
    status = STATUS.read_text(encoding="ascii")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1]
    if not int(effective, 16) >> CAP_NET_ADMIN & 1:
        raise Failure(
            "changing routes needs the capability CAP_NET_ADMIN, which this process has not",
            help="run it as root, or from a unit with AmbientCapabilities=CAP_NET_ADMIN",
            exit_code=MISSING_PART,
        )


def interface_names() -> dict[int, str]:
    """The interfaces of this network namespace, names by index."""
    return dict(socket.if_nameindex())


def read_routes(claims: Collection[Prefix], parts: Collection[Key], enough: int) -> list[Route]:
    """The routes of the main table, both families, everyone's, as far as claims can depend on them.

    Args:
        claims: all routes that cover one of them, or a half of it, are read.
        parts: and all that cover one of these.
        enough: and those to so many prefixes inside each claim.

    Raises:
        Failure: the kernel does not answer, or the table changed during each of five attempts to read it.
    """
    found = []
    for family in FAMILIES:
        mine = [prefix for prefix in claims if prefix.version == VERSIONS[family]]
        whose = 0 if mine else ROUTE_PROTOCOL
        dumped = _dump(RTM_GETROUTE, family, whose, partial(Sieve, family, mine, parts, enough))
        found += [route for message in dumped if (route := route_of(message, family))]
    return found


def read_own_routes() -> list[Route]:
    """The agent's routes; the kernel leaves out all others.

    Raises:
        Failure: as `read_routes`.
    """
    return [
        route
        for family in FAMILIES
        for message in _dump(RTM_GETROUTE, family, ROUTE_PROTOCOL)
        if (route := route_of(message, family)) and route.own
    ]


def read_some_routes(most: int) -> list[Route]:
    """As `read_routes`, but at most so many messages of each family, also of a table that changes meanwhile.

    Raises:
        Failure: the kernel does not answer.
    """
    found = []
    for family in FAMILIES:
        with _netlink() as channel:
            channel.send(dump_request(RTM_GETROUTE, family, 1))
            dumped = list(islice(_dumped(channel), most))
        found += [
            route for message in dumped if message.type != NLMSG_DONE and (route := route_of(message, family))
        ]
    return found


def read_rule_tables() -> list[int]:
    """The tables beside local, main and default to which policy rules lead, sorted.

    Raises:
        Failure: as `read_routes`.
    """
    tables = {rule_table(message) for family in FAMILIES for message in _dump(RTM_GETRULE, family)}
    return sorted(table for table in tables if table is not None)


def change_routes(changes: Sequence[tuple[Change, Route]]) -> list[Rejected]:
    """Make the changes in their order; one that fails does not stop the others.

    Where a new route failed, an older one that overlaps it stays: the last good rather than none.

    Raises:
        Failure: the kernel does not answer.
    """
    with _netlink(own_port()) as channel:
        new = [(change, route) for change, route in changes if change != "remove"]
        rejected = _make(channel, new)
        old = [route for change, route in changes if change == "remove"]
        goes = apart((route.prefix for route in old), (each.route.prefix for each in rejected))
        return rejected + _make(channel, [("remove", route) for route in old if route.prefix in goes])


def own_port() -> int:
    """The netlink port that this process changes routes from: notifications name who made a change by it.

    Made as libnl makes its ports, of the process and a number above its 22 bits: PID_MAX_LIMIT, linux/threads.h.
    """
    return ROUTE_PROTOCOL << PID_BITS | os.getpid()


def _make(channel: socket.socket, changes: Sequence[tuple[Change, Route]]) -> list[Rejected]:
    rejected = []
    for start in range(0, len(changes), REQUESTS_IN_FLIGHT):
        window = changes[start : start + REQUESTS_IN_FLIGHT]
        channel.send(b"".join(change_requests(window)))
        answered = False
        while not answered:
            for message in messages(_receive(channel)):
                code, text = error_of(message)
                change, route = window[message.sequence]
                if code and not (change == "remove" and code == errno.ESRCH):  # gone already, as it should be
                    rejected.append(Rejected(route, text or os.strerror(code)))
                answered = message.sequence == len(window) - 1
    return rejected


def _dump(
    kind: int, family: int, protocol: int = 0, sieve: Callable[[], Sieve] | None = None
) -> list[Message]:
    for _attempt in range(DUMP_ATTEMPTS):
        with _netlink() as channel:
            channel.send(dump_request(kind, family, 1, protocol))
            found = list(_dumped(channel, sieve))
        if not any(message.flags & NLM_F_DUMP_INTR for message in found):
            return [message for message in found if message.type != NLMSG_DONE]
    raise Failure(
        f"the kernel's routing table changed during each of {DUMP_ATTEMPTS} attempts to read it",
        help="run the command again when routing has settled",
        exit_code=MISSING_PART,
    )


def _dumped(channel: socket.socket, sieve: Callable[[], Sieve] | None = None) -> Iterator[Message]:
    split, left = messages, SHORT_BYTES
    while True:
        datagram = _receive(channel)
        if sieve and left > 0 >= (left := left - len(datagram)):
            split = sieve().sift
        for message in split(datagram):
            if message.type == NLMSG_ERROR:
                code, text = error_of(message)
                if code in EMPTY_ERRORS:
                    return
                raise OSError(code, text or os.strerror(code))
            yield message
            if message.type == NLMSG_DONE:
                return


def _receive(channel: socket.socket) -> bytes:
    datagram, _, flags, _ = channel.recvmsg(DATAGRAM_BYTES)
    if flags & socket.MSG_TRUNC:
        raise OSError(errno.EMSGSIZE, f"an answer of more than {DATAGRAM_BYTES} bytes")
    return datagram


@contextmanager
def _netlink(port: int = 0) -> Iterator[socket.socket]:
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
        ) as channel:
            for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK):
                channel.setsockopt(SOL_NETLINK, option, 1)
            channel.settimeout(TIMEOUT_SECONDS)
            _bind(channel, port)
            yield channel
    except (OSError, ValueError) as error:
        raise Failure(
            f"the kernel does not answer over rtnetlink: {error}",
            help="Linux 4.20 or later is needed; see `journalctl -k`",
            exit_code=MISSING_PART,
        ) from error


def _bind(channel: socket.socket, port: int) -> None:
    try:
        channel.bind((port, 0))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        channel.bind(
            (0, 0)
        )  # another container's process of the same number: its changes are then not told from ours
