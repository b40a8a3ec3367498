"""The kernel's TCP sockets by NETLINK_SOCK_DIAG: opened by pyroute2, received into one buffer, not parsed.

The old request TCPDIAG_GETSOCK returns both families in one walk of the kernel's table, SOCK_DIAG_BY_FAMILY
needs a walk for each; the second is the fall-back for a kernel that no longer knows the first.
"""

import errno
import secrets
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from . import kernel
from . import netns as namespaces

_WITHOUT_TCP_INFO: Final = {"SYN_RECV", "TIME_WAIT", "CLOSE", "LISTEN"}

# The states in which the kernel has a struct tcp_info to report: no listeners, whose queues count connections,
# and none of the small records that stand for TIME_WAIT and SYN_RECV.
EVERY: Final = (1 << 12) - 1
CONNECTED: Final = EVERY & ~sum(
    1 << state for state, name in kernel.STATES.items() if name in _WITHOUT_TCP_INFO
)

# netlink_recvmsg (net/netlink/af_netlink.c) fills at most 32 KiB; a buffer of less than that may cut datagrams.
MAX_DATAGRAM: Final = 1 << 16
RECEIVE_TIMEOUT_S: Final = 5

_HEADER: Final = struct.Struct("<IHHII")
_ERROR: Final = struct.Struct("<IHHIIi")
_TIMEVAL: Final = struct.Struct("@ll")

# struct inet_diag_req: family, two lengths, attributes wanted, struct inet_diag_sockid, states, dbs.
_ONE_WALK: Final = struct.Struct("<BBBB48xII")
# struct inet_diag_req_v2: family, protocol, attributes wanted, padding, states, struct inet_diag_sockid.
_ONE_FAMILY: Final = struct.Struct("<BBBxI48x")

_UNKNOWN_REQUEST: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT})


class Broken(Exception):
    """The kernel could not deliver the dump whole: the socket overran, or a datagram was cut."""


class Refused(Exception):
    """The kernel answered the request with an error.

    Args:
        code: its errno.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def one_walk(states: int, attributes: int, filters: bytes = b"") -> list[tuple[int, bytes]]:
    """The request, as message type and payload, that returns both families at once.

    Args:
        states: a bit for each state wanted.
        attributes: a bit for each attribute wanted.
        filters: netlink attributes that follow the request (INET_DIAG_REQ_BYTECODE).
    """
    payload = _ONE_WALK.pack(kernel.AF_INET, 0, 0, attributes, states, 0)
    return [(kernel.TCPDIAG_GETSOCK, payload + filters)]


def walk_by_family(states: int, attributes: int, filters: bytes = b"") -> list[tuple[int, bytes]]:
    """The two requests, as message type and payload, that return a family each; arguments as of `one_walk`."""
    return [
        (
            kernel.SOCK_DIAG_BY_FAMILY,
            _ONE_FAMILY.pack(family, socket.IPPROTO_TCP, attributes, states) + filters,
        )
        for family in (kernel.AF_INET, kernel.AF_INET6)
    ]


class SocketDiag:
    """A netlink socket to the socket diagnostics of one network namespace.

    Args:
        netns: name of the namespace as `ip netns` knows it, or None for that of this process.

    Raises:
        Failure: the namespace does not exist or its name is empty, or this host can't be read.

    Attributes:
        netns_inode: of the namespace.
    """

    def __init__(self, netns: str | None = None) -> None:
        self._netns = netns
        self.netns_inode: Final = namespaces.inode_of(netns)
        self._walks = one_walk
        self._finished = True
        self._socket = self._open()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def reopen(self) -> None:
        """Start over: what the kernel has not delivered yet is forgotten with the old socket."""
        self._socket.close()
        self._socket = self._open()

    def dump(
        self,
        states: int,
        buffer: bytearray,
        attributes: int = kernel.WANTED_ATTRIBUTES,
        filters: bytes = b"",
    ) -> Iterator[list[tuple[int, int]]]:
        """Receive the TCP sockets of the namespace.

        Args:
            states: a bit for each state wanted, bit 1 is ESTABLISHED.
            buffer: where the datagrams are received, one behind the other; a multiple of four bytes.
            attributes: bit N - 1 asks for attribute N.
            filters: netlink attributes that follow the request (INET_DIAG_REQ_BYTECODE); empty: every socket.

        Yields:
            Begin and end of each datagram in the buffer, bytes, each time it is full and at the end. The buffer
            is overwritten when the generator is resumed.

        Raises:
            Broken: part of the dump is lost.
            Failure: the kernel has no TCP socket diagnostics, or does not answer.
        """
        if not self._finished:
            self.reopen()  # else what is left of the dump before would be taken for this one's
        self._finished = False
        try:
            try:
                yield from self._receive(self._walks(states, attributes, filters), buffer)
            except Refused as refused:
                if self._walks is not one_walk or refused.code not in _UNKNOWN_REQUEST:
                    raise
                self._walks = walk_by_family
                yield from self._receive(self._walks(states, attributes, filters), buffer)
            self._finished = True
        except Refused as refused:
            raise _refusal(refused.code) from refused
        except BlockingIOError as error:
            raise Failure(
                f"the kernel did not answer on NETLINK_SOCK_DIAG within {RECEIVE_TIMEOUT_S} s",
                exit_code=MISSING_PART,
            ) from error

    def _open(self) -> socket.socket:
        if sys.byteorder != "little":
            raise Failure("only little-endian hosts can be read", exit_code=MISSING_PART)
        # Importing pyroute2 takes 0.3 s, which captures and `--help` need not wait for.
        from pyroute2.netns import create_socket  # noqa: PLC0415

        try:
            # This thread enters the namespace: pyroute2 would fork, and other threads may hold locks.
            with namespaces.inside(self._netns):
                opened: socket.socket = create_socket(
                    None, socket.AF_NETLINK, socket.SOCK_DGRAM, kernel.NETLINK_SOCK_DIAG, flags=0
                )
        except OSError as error:
            where = f" in namespace `{self._netns}`" if self._netns else ""
            raise Failure(f"netlink socket{where}: {error.strerror}", exit_code=MISSING_PART) from error
        opened.connect((0, 0))  # only the kernel may send to it
        # A poll(2) before each datagram, as Python's own timeout does it, would double the system calls.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(RECEIVE_TIMEOUT_S, 0))
        return opened

    def _receive(
        self, requests: list[tuple[int, bytes]], buffer: bytearray
    ) -> Iterator[list[tuple[int, int]]]:
        view = memoryview(buffer)
        datagrams: list[tuple[int, int]] = []
        at = 0
        sequence = secrets.randbits(32)
        for kind, payload in requests:
            length = _HEADER.size + len(payload)
            self._socket.send(
                _HEADER.pack(length, kind, kernel.NLM_F_REQUEST | kernel.NLM_F_DUMP, sequence, 0) + payload
            )
            done = False
            while not done:
                if len(buffer) - at < MAX_DATAGRAM:
                    yield datagrams
                    datagrams, at = [], 0
                end = at + self._receive_one(view[at:])
                end, done = _without_end(buffer, at, end, sequence)
                if end > at:
                    datagrams.append((at, end))
                    at = end + 3 & ~3
        yield datagrams

    def _receive_one(self, room: memoryview) -> int:
        try:
            length = self._socket.recv_into(room, 0, socket.MSG_TRUNC)
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                raise Broken("the netlink socket overran") from error
            raise
        if length > len(room):
            raise Broken(f"a datagram of {length} bytes was cut to {len(room)}")
        return length


def _without_end(buffer: bytearray, begin: int, end: int, sequence: int) -> tuple[int, bool]:
    """Where the sockets of a datagram end, and whether the dump ends with it.

    Raises:
        Refused: the datagram is an error, or the dump ended with one.
    """
    if end - begin < _ERROR.size:
        return end, False
    _, kind, _, _, _, code = _ERROR.unpack_from(buffer, begin)
    if kind == kernel.NLMSG_ERROR:
        raise Refused(-code)
    # NLMSG_DONE stands behind the last sockets or alone; behind them it begins where they end.
    length, kind, _, its_sequence, _, code = _ERROR.unpack_from(buffer, end - _ERROR.size)
    if (length, kind, its_sequence) != (_ERROR.size, kernel.NLMSG_DONE, sequence):
        return end, False
    if code < 0:
        raise Refused(-code)
    return end - _ERROR.size, True


def _refusal(code: int) -> Failure:
    if code in _UNKNOWN_REQUEST:
        return Failure(
            "the kernel has no TCP socket diagnostics",
            help="load them: `modprobe tcp_diag`",
            exit_code=MISSING_PART,
        )
    name = errno.errorcode.get(code, str(code))
    return Failure(f"the kernel refused to list TCP sockets: {name}", exit_code=MISSING_PART)
