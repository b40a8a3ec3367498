"""Records to the bytes of collectors/bpf/steering.h and back."""

import struct
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, NamedTuple, get_args

from tidegate_edge.errors import Failure
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.prefix import Prefix

from .held import Address, Algorithm, Counters, Steered, Window

LAYOUT: Final = 1
"""The number by which maps are named: one of another number is not ours to read."""

GENERATION_LENGTH: Final = 16
NO_CLIENT: Final = IPv6Network("::/128")
"""The key whose entry names the generation: no connection comes from the unspecified address (RFC 4291 2.5.2)."""

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_MAPPED_BYTES: Final = _MAPPED.network_address.packed[:12]
_PER_REQUEST: Final = 1
_MAX_BYTES: Final = (1 << 64) - 1
_MAX_ALGORITHM: Final = 15  # TCP_CA_NAME_MAX, less its end
_MAX_SEGMENTS: Final = (1 << 31) - 1  # bpf_setsockopt() takes an int

_PREFIX: Final = struct.Struct("=I16s")
_STATED: Final = struct.Struct("=IIIQ16s16s")
_SETTINGS_SIZE: Final = _PREFIX.size + _STATED.size
_CONNECTION: Final = struct.Struct(f"={_SETTINGS_SIZE}s24xQII")
_STEERED: Final = struct.Struct(f"=16sQIII4x{_CONNECTION.size}s")
_COUNTERS: Final = struct.Struct("=6Q")
_WINDOWS: Final[tuple[Window, ...]] = get_args(Window)  # enum window
_ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)  # enum algorithm

KEY_SIZE: Final = _PREFIX.size
VALUE_SIZE: Final = _SETTINGS_SIZE
COUNTERS_SIZE: Final = _COUNTERS.size
STEERED_SIZE: Final = _STEERED.size


class Given(NamedTuple):
    """An entry of the trie."""

    prefix: Prefix
    settings: Settings
    generation: str


def encode_prefix(prefix: Prefix) -> bytes:
    """As a key of the trie.

    Raises:
        Failure: an IPv6 prefix that stands for IPv4 clients, or for none.
    """
    if isinstance(prefix, IPv4Network):
        return _PREFIX.pack(96 + prefix.prefixlen, _MAPPED_BYTES + prefix.network_address.packed)
    address = prefix.network_address.packed
    if prefix.prefixlen >= 96 and address.startswith(_MAPPED_BYTES):
        inside = IPv4Network((address[12:], prefix.prefixlen - 96))
        raise Failure(f"{prefix} is no prefix of IPv6 clients", help=f"claim {inside}")
    if prefix.prefixlen == 128 and not any(address):
        raise Failure(f"{prefix} is no prefix of clients", help="leave the claim out")
    return _PREFIX.pack(prefix.prefixlen, address)


def decode_prefix(key: bytes) -> Prefix:
    """The prefix of a key of the trie."""
    length, address = _PREFIX.unpack(key)
    if length >= 96 and address.startswith(_MAPPED_BYTES):
        return IPv4Network((address[12:], length - 96))
    return IPv6Network((address, length))


def encode_generation(generation: str) -> tuple[bytes, bytes]:
    """The entry that names the generation: key and value.

    Raises:
        Failure: the name is empty, longer than 16 bytes or not of ASCII.
    """
    name = generation.encode("ascii", errors="replace")
    if not 0 < len(name) <= GENERATION_LENGTH or not generation.isascii() or "\0" in generation:
        raise Failure(
            f"generation `{generation}` can't be told to the kernel",
            help=f"name it by 1 to {GENERATION_LENGTH} ASCII characters",
        )
    key = _PREFIX.pack(NO_CLIENT.prefixlen, NO_CLIENT.network_address.packed)
    return key, key + _STATED.pack(0, 0, 0, 0, b"", name)


def encode_settings(settings: Settings, generation: str, *, per_request: bool) -> bytes:
    """A value of the trie without its prefix, which stands before it: a generation has few that differ.

    Args:
        settings: of a prefix.
        generation: as `encode_generation` takes it.
        per_request: count the bytes from each request on.

    Raises:
        Failure: a value that the kernel's integers or names can't hold.
    """
    algorithm = (settings.congestion_control or "").encode()
    windows = settings.initcwnd or 0, settings.initrwnd or 0
    if (
        len(algorithm) > _MAX_ALGORITHM
        or not 0 <= min(windows) <= max(windows) <= _MAX_SEGMENTS
        or not 0 <= settings.min_bytes <= _MAX_BYTES
    ):
        raise Failure(f"{settings}: a value is more than the kernel can hold")
    flags = _PER_REQUEST if per_request else 0
    return _STATED.pack(*windows, flags, settings.min_bytes, algorithm, generation.encode())


def decode_settings(value: bytes) -> Given:
    """A value of the trie as records."""
    initcwnd, initrwnd, _, min_bytes, algorithm, generation = _STATED.unpack_from(value, _PREFIX.size)
    return Given(
        decode_prefix(value[: _PREFIX.size]),
        Settings(_text(algorithm) or None, initcwnd or None, initrwnd or None, min_bytes),
        _text(generation),
    )


def decode_counters(value: bytes) -> Counters:
    """Of struct counters."""
    return Counters(*_COUNTERS.unpack(value))


def decode_steered(record: bytes) -> Steered:
    """Of struct record of collectors/bpf/steered.bpf.c."""
    remote, cookie, remote_port, local_port, netns, connection = _STEERED.unpack(record)
    value, bytes_before, window, algorithm = _CONNECTION.unpack(connection)
    given = decode_settings(value)
    return Steered(
        _address(remote),
        remote_port,
        local_port,
        netns,
        cookie,
        given.generation,
        given.prefix,
        given.settings,
        _WINDOWS[window],
        _ALGORITHMS[algorithm],
        bytes_before,
    )


def encode_address(address: Address) -> bytes:
    """As a record of collectors/bpf/steered.bpf.c begins."""
    return _MAPPED_BYTES + address.packed if isinstance(address, IPv4Address) else address.packed


def _address(packed: bytes) -> Address:
    return IPv4Address(packed[12:]) if packed.startswith(_MAPPED_BYTES) else IPv6Address(packed)


def _text(name: bytes) -> str:
    return name.rstrip(b"\0").decode(errors="replace")
