"""Which traffic a socket carries: longest prefix match of its remote address in the fleet's own prefixes."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.sockets_pb2 import TrafficClass

from .addresses import Addresses

Network = IPv4Network | IPv6Network

UNKNOWN: Final = int(TrafficClass.TRAFFIC_CLASS_UNKNOWN)
CLIENT: Final = int(TrafficClass.TRAFFIC_CLASS_CLIENT)
POP_TO_POP: Final = int(TrafficClass.TRAFFIC_CLASS_POP_TO_POP)
INTRA_POP: Final = int(TrafficClass.TRAFFIC_CLASS_INTRA_POP)
ORIGIN: Final = int(TrafficClass.TRAFFIC_CLASS_ORIGIN)

# Loopback and link-local (RFC 6890): never beyond this POP.
NEAR: Final[tuple[Network, ...]] = tuple(
    ip_network(text) for text in ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")
)

# A key is one number for the two halves of an address. Below this one it is the lower half: of ::1 and of all IPv4,
# ::ffff:0:0/96. Above it, it is the upper half. This one is the key of what is left of ::/15, which no host has: the
# IETF reserves it (RFC 4291, sections 2.4 and 2.5.5.2).
KEY_OF_THE_REST: Final = 1 << 48
_LOW: Final = (1 << 64) - 1

_UNDECIDED: Final = -1


@dataclass(frozen=True, slots=True)
class _Steps:
    """A function that changes only at its bounds: `values[i]` from `bounds[i]` on."""

    bounds: npt.NDArray[np.generic]
    values: npt.NDArray[np.int64]

    def at(self, places: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
        return self.values.take(self.bounds.searchsorted(places, side="right") - 1)


class Classifier:
    """The class of sockets by longest prefix match of their remote addresses.

    The 128-bit space is cut at each prefix's first address and behind its last. A key of 64 bits mostly decides;
    addresses of a key within which the class changes are looked up whole.
    """

    def __init__(self, prefixes: Iterable[tuple[Network, int]]) -> None:
        """Args: `prefixes` with the class of each; of equal ones the later counts. What is in none is a client's."""
        steps = _flatten(prefixes)
        by_key = _by_key(steps)
        values = np.array([value for _, value in steps], np.int64)
        self._whole = _Steps(np.array([first.to_bytes(16, "big") for first, _ in steps]), values)
        self._short = _Steps(np.array(list(by_key), np.uint64), np.array(list(by_key.values()), np.int64))
        self._decided = _UNDECIDED not in by_key.values()

    def steps(self) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]] | None:
        """Ascending keys, and the class from each on; None where keys do not decide."""
        return (self._short.bounds, self._short.values) if self._decided else None

    def classify(self, local: Addresses, remote: Addresses) -> npt.NDArray[np.int64]:
        """The `TrafficClass` of each socket; one whose two addresses are the same stays within the host."""
        found = self._short.at(_keys(remote))
        if not self._decided:
            left = np.flatnonzero(found == _UNDECIDED)
            found[left] = self._whole.at(_as_bytes(remote.at(left)))
        within_host = local.low == remote.low
        within_host &= local.high == remote.high
        np.putmask(found, within_host, INTRA_POP)
        return found


def _key(address: int) -> int:
    high, low = address >> 64, address & _LOW
    return max(high, KEY_OF_THE_REST) if high else min(low, KEY_OF_THE_REST)


def _keys(addresses: Addresses) -> npt.NDArray[np.uint64]:
    rest = np.uint64(KEY_OF_THE_REST)
    return np.where(addresses.high, np.maximum(addresses.high, rest), np.minimum(addresses.low, rest))


def _as_bytes(addresses: Addresses) -> npt.NDArray[np.bytes_]:
    """16 bytes each, which sort as the addresses do."""
    halves = np.stack([addresses.high, addresses.low], axis=1)
    return halves.astype(">u8").view("S16")[:, 0]


def _by_key(steps: list[tuple[int, int]]) -> dict[int, int]:
    """The same function of keys, which ascend with addresses; a step within a key leaves it undecided."""
    found: dict[int, int] = {}
    for first, value in steps:
        key = _key(first)
        if first and _key(first - 1) == key:
            found[key] = _UNDECIDED
            key += 1
        if key <= _LOW:
            found[key] = value
    return found


def _flatten(prefixes: Iterable[tuple[Network, int]]) -> list[tuple[int, int]]:
    """The whole space as (first address, class), ascending."""
    ranges = sorted(((*_range(network), value) for network, value in prefixes), key=lambda r: r[0] - r[1])
    cuts = {0} | {edge for first, behind, _ in ranges for edge in (first, behind)}
    bounds = sorted(cut for cut in cuts if cut < 1 << 128)
    values = [CLIENT] * len(bounds)
    for first, behind, value in ranges:  # the widest first, so that the longest prefix has the last word
        begin, end = bisect_left(bounds, first), bisect_left(bounds, behind)
        values[begin:end] = [value] * (end - begin)
    return list(zip(bounds, values, strict=True))


def _range(network: Network) -> tuple[int, int]:
    """First address, and the one behind the last."""
    first = int(network.network_address)
    if isinstance(network, IPv4Network):
        first |= 0xFFFF << 32
    return first, first + network.num_addresses
