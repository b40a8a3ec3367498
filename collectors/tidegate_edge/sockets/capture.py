"""Recorded netlink traffic: pcap files of link type LINUX_NETLINK.

Source of the formats: draft-ietf-opsawg-pcap (file and packet headers) and the registry of link types, 253:
before each datagram stand 16 bytes in network order, of which the last two are the netlink family.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tidegate_edge.errors import BAD_INPUT, Failure

from .kernel import NETLINK_SOCK_DIAG

# Magic number as the file's first four bytes: byte order, nanoseconds in one unit of the packets' time.
_MAGICS: Final = {
    bytes.fromhex("d4c3b2a1"): ("<", 1_000),
    bytes.fromhex("a1b2c3d4"): (">", 1_000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
_FILE_HEADER_LENGTH: Final = 24
_PACKET_HEADER_LENGTH: Final = 16
_LINK_TYPE_MASK: Final = 0x0FFFFFFF  # the upper bits tell of a frame check sequence
_LINUX_NETLINK: Final = 253
_COOKED_HEADER_LENGTH: Final = 16

# A netlink datagram of a dump has 32 KiB at most; what claims more than this is no packet.
_MAX_PACKET_LENGTH: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Datagram:
    """One netlink datagram.

    Attributes:
        at: offset of its packet in the file, bytes.
        observed_at_ns: Unix time of the capture, nanoseconds.
        data: the netlink messages.
        cut: bytes that the capture left out at the end.
    """

    at: int
    observed_at_ns: int
    data: bytes
    cut: int


def read_capture(path: Path) -> Iterator[Datagram]:
    """The socket-diagnostics datagrams of a capture, in its order; other netlink families are passed over.

    Raises:
        Failure: the file can't be read, is no capture of netlink, or is damaged or cut; names the offset.
            Everything before that place has been given out.
    """
    try:
        with path.open("rb") as file:
            yield from _datagrams(file, path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", exit_code=BAD_INPUT) from error


def _datagrams(file: BinaryIO, path: Path) -> Iterator[Datagram]:
    head = file.read(_FILE_HEADER_LENGTH)
    if head[:4] not in _MAGICS:
        way_out = "record one with `tcpdump -i nlmon0 -w FILE.pcap`"
        raise Failure(f"{path}: byte 0: no pcap file: it begins with `{head[:4].hex()}`", help=way_out)
    order, unit_ns = _MAGICS[head[:4]]
    if len(head) < _FILE_HEADER_LENGTH:
        raise Failure(f"{path}: byte {len(head)}: the file header is cut: it has {_FILE_HEADER_LENGTH} bytes")
    link_type = struct.unpack_from(f"{order}I", head, 20)[0] & _LINK_TYPE_MASK
    if link_type != _LINUX_NETLINK:
        raise Failure(f"{path}: byte 20: link type {link_type} is not netlink's, {_LINUX_NETLINK}")

    at = _FILE_HEADER_LENGTH
    packet = struct.Struct(f"{order}IIII")
    while head := file.read(_PACKET_HEADER_LENGTH):
        if len(head) < _PACKET_HEADER_LENGTH:
            raise Failure(f"{path}: byte {at}: the last packet's header is cut: {len(head)} of 16 bytes")
        seconds, fraction, length, original_length = packet.unpack(head)
        if length > _MAX_PACKET_LENGTH or length < _COOKED_HEADER_LENGTH:
            raise Failure(f"{path}: byte {at}: a packet of {length} bytes can't be netlink's")
        data = file.read(length)
        if len(data) < length:
            raise Failure(f"{path}: byte {at}: the last packet is cut: {len(data)} of {length} bytes")
        if int.from_bytes(data[14:16], "big") == NETLINK_SOCK_DIAG:
            observed_at_ns = seconds * 1_000_000_000 + fraction * unit_ns
            cut = max(original_length - length, 0)
            yield Datagram(at, observed_at_ns, data[_COOKED_HEADER_LENGTH:], cut)
        at += _PACKET_HEADER_LENGTH + length
