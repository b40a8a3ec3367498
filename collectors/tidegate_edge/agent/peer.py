"""Who is at the other end of a Unix socket, as the kernel says, and what that may ask."""

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_UCRED: Final = struct.Struct("=iII")  # struct ucred, linux/socket.h: pid, uid, gid
_SO_PEERGROUPS: Final = 59  # asm-generic/socket.h
_MOST_BYTES: Final = 1024  # of Python's getsockopt


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected, as it was then; `groups` are its own and the supplementary ones."""

    uid: int
    groups: frozenset[int]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: `owner` and root anything, members of `group` what changes nothing."""

    owner: int
    group: int

    def may_change(self, peer: Peer) -> bool:
        """Whether it may ask for a change."""
        return peer.uid in {0, self.owner}

    def may_read(self, peer: Peer) -> bool:
        """Whether it may ask what changes nothing."""
        return self.may_change(peer) or self.group in peer.groups


def peer_of(connection: socket.socket) -> Peer:
    """The peer of a connected Unix socket; of more than 256 supplementary groups, none is seen.

    Raises:
        OSError: the kernel does not say.
    """
    _, uid, gid = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    groups = b""
    with suppress(OSError):  # ERANGE: too many
        groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_BYTES)
    return Peer(uid, frozenset((gid, *memoryview(groups).cast("I"))))
