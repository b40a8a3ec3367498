"""Notice that the host's routing changed, or that someone touched our routes. What changed, a new reading tells.

Links count because one that goes down takes its IPv4 routes with it, and the kernel tells of no route (measured on
Linux 6.18); nexthop objects and rules because routes follow them. What this process changes itself does not count.
"""

import ctypes
import errno
import socket
import struct
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .kernel import SOL_NETLINK, own_port
from .netlink import RT_TABLE_MAIN, RTM_DELROUTE, RTM_NEWROUTE

NETLINK_ADD_MEMBERSHIP: Final = 1  # linux/netlink.h
# RTNLGRP_*, linux/rtnetlink.h: links, routes and rules of both families, nexthop objects (Linux 5.3).
GROUPS: Final = (1, 7, 8, 11, 19)
NEXTHOP_GROUP: Final = 32
SO_ATTACH_FILTER: Final = 26  # asm-generic/socket.h
EVENT_BYTES: Final = 1 << 16
EVENTS_A_CALL: Final = 1 << 14  # a storm must not keep the caller

# Offsets: struct nlmsghdr, linux/netlink.h; struct rtmsg after it, linux/rtnetlink.h.
TYPE_OFFSET: Final = 4
PORT_OFFSET: Final = 12
TABLE_OFFSET: Final = 16 + 4
# Instructions, linux/bpf_common.h: load a word, half word or byte at an offset; jump where equal; return.
LOAD_WORD: Final = 0x20
LOAD_HALF: Final = 0x28
LOAD_BYTE: Final = 0x30
JUMP_EQUAL: Final = 0x15
RETURN: Final = 0x06
TAKE: Final = 0xFFFFFFFF
DROP: Final = 0
INSTRUCTION: Final = struct.Struct("=HBBI")  # struct sock_filter: code, jump if true, if false, operand


class Watch:
    """A socket that hears of changes in the routing of this network namespace."""

    def __init__(self) -> None:
        """Listen from now on; read the routes after this, not before.

        Raises:
            Failure: the kernel gives no such socket.
        """
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            self._socket = socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)
            _attach_filter(self._socket, own_port())
            self._socket.bind((0, 0))
            for group in GROUPS:
                self._socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
            _hear_of_nexthops(self._socket)
        except OSError as error:
            raise Failure(
                f"the kernel tells nothing of its routing: {error.strerror}",
                help="allow AF_NETLINK to this process (RestrictAddressFamilies= of its unit)",
                exit_code=MISSING_PART,
            ) from error

    def fileno(self) -> int:
        """The descriptor that becomes readable when something changed."""
        return self._socket.fileno()

    def changed(self) -> bool:
        """Whether anything changed since the last call; takes all that is there, and does not wait.

        Raises:
            Failure: the socket is broken; the watch has to be made anew.
        """
        found = False
        for _ in range(EVENTS_A_CALL):
            try:
                self._socket.recv(EVENT_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # more than the kernel could keep for us: what, nobody knows
                    raise Failure(
                        f"the watch of the routing table broke: {error.strerror}", exit_code=MISSING_PART
                    ) from error
            found = True
        return found

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def _hear_of_nexthops(channel: socket.socket) -> None:
    try:
        channel.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NEXTHOP_GROUP)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a kernel without nexthop objects
            raise


def _attach_filter(channel: socket.socket, own: int) -> None:
    """Let the kernel drop our own changes, of which thousands would fill the socket, and other tables' routes."""
    program = _program(
        (LOAD_WORD, 0, 0, PORT_OFFSET),
        (JUMP_EQUAL, 6, 0, _loaded("I", own)),
        (LOAD_HALF, 0, 0, TYPE_OFFSET),
        (JUMP_EQUAL, 1, 0, _loaded("H", RTM_NEWROUTE)),
        (JUMP_EQUAL, 0, 2, _loaded("H", RTM_DELROUTE)),
        (LOAD_BYTE, 0, 0, TABLE_OFFSET),
        (JUMP_EQUAL, 0, 1, RT_TABLE_MAIN),
        (RETURN, 0, 0, TAKE),
        (RETURN, 0, 0, DROP),
    )
    text = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions, and where they stand.
    where = struct.pack("@HP", len(program) // INSTRUCTION.size, ctypes.addressof(text))
    channel.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, where)


def _program(*instructions: tuple[int, int, int, int]) -> bytes:
    return b"".join(INSTRUCTION.pack(*each) for each in instructions)


def _loaded(form: str, value: int) -> int:
    """The value as a filter loads it: in network order, whatever the order it was written in."""
    return int.from_bytes(struct.pack(f"={form}", value), "big")
