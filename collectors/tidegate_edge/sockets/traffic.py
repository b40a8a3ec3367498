"""Which traffic a socket carries: longest prefix match of its remote address in the fleet's own prefixes."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import groupby
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

_LOW: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Steps:
    """A function of 64 bits that changes only at its bounds: `values[i]` from `bounds[i]` on."""

    bounds: npt.NDArray[np.uint64]
    values: npt.NDArray[np.int64]

    def at(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return self.values[np.searchsorted(self.bounds, keys, side="right") - 1]


class Classifier:
    """The class of sockets by longest prefix match of their remote addresses.

    The 128-bit space is cut at each prefix's first address and behind its last. The upper 64 bits are looked up
    first; where prefixes divide them further, as all IPv4 does below ::/64, the lower 64 decide.
    """

    def __init__(self, prefixes: Iterable[tuple[Network, int]]) -> None:
        """Args: `prefixes` with the class of each; of equal ones the later counts. What is in none is a client's."""
        steps = _flatten(prefixes)
        self._divided: list[_Steps] = []
        bounds, values = [], []
        for high, group in groupby(steps, key=lambda step: step[0] >> 64):
            inner = [(bound & _LOW, value) for bound, value in group]
            bounds.append(high)
            if len(inner) == 1:
                values.append(inner[0][1])
            else:
                self._divided.append(_steps(inner))
                values.append(-len(self._divided))
        self._by_high = _steps(list(zip(bounds, values, strict=True)))

    def classify(self, local: Addresses, remote: Addresses) -> npt.NDArray[np.int64]:
        """The `TrafficClass` of each socket; one whose two addresses are the same stays within the host."""
        found = self._by_high.at(remote.high)
        divided = np.flatnonzero(found < 0)
        while len(divided):  # once where there is only IPv4
            index = found[divided[0]]
            same = found[divided] == index
            here = divided if same.all() else divided[same]
            found[here] = self._divided[-index - 1].at(remote.low[here])
            divided = divided[~same]
        within_host = local.low == remote.low
        within_host &= local.high == remote.high
        np.putmask(found, within_host, INTRA_POP)
        return found


def _steps(pairs: list[tuple[int, int]]) -> _Steps:
    bounds, values = zip(*pairs, strict=True)
    return _Steps(np.array(bounds, np.uint64), np.array(values, np.int64))


def _flatten(prefixes: Iterable[tuple[Network, int]]) -> list[tuple[int, int]]:
    """The whole space as (first address, class), ascending; halves that are divided begin and end with a step."""
    ranges = sorted(((*_range(network), value) for network, value in prefixes), key=lambda r: r[0] - r[1])
    cuts = {0} | {edge for first, behind, _ in ranges for edge in (first, behind)}
    divided = {cut >> 64 for cut in cuts if cut & _LOW}
    cuts |= {high << 64 for high in divided} | {high + 1 << 64 for high in divided}
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
