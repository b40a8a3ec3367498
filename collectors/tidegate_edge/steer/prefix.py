"""Prefixes: their order, and those that cover them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, Generic, TypeAlias, TypeVar

Prefix: TypeAlias = IPv4Network | IPv6Network
Key: TypeAlias = tuple[int, int, int]
"""Family (4 or 6), address, length: compares and hashes ten times as fast as the `ipaddress` object."""
Lengths: TypeAlias = Mapping[int, Sequence[int]]
"""Prefix lengths by family (4 or 6), the longest first."""

Value = TypeVar("Value")

ADDRESS_BITS: Final[Mapping[int, int]] = {4: 32, 6: 128}
PREFIXES_REMEMBERED: Final = 1 << 15  # 10 MB at most; a host's claims, and the halves of some, fit


def order(prefix: Prefix) -> Key:
    """The prefix as a key, and how prefixes sort: family, address, length."""
    return prefix.version, int(prefix.network_address), prefix.prefixlen


@lru_cache(maxsize=PREFIXES_REMEMBERED)
def prefix_of(address: bytes, length: int) -> Prefix:
    """The prefix of an address in network order, 4 or 16 bytes, without host bits.

    Raises:
        ValueError: host bits are set, or the length is more than the address has.
    """
    family = IPv4Network if len(address) == 4 else IPv6Network
    return family((int.from_bytes(address, "big"), length))


def lengths_of(prefixes: Iterable[Prefix]) -> Lengths:
    """The lengths that occur in each family: a search by prefix then tries few."""
    found: dict[int, set[int]] = {version: set() for version in ADDRESS_BITS}
    for prefix in prefixes:
        found[prefix.version].add(prefix.prefixlen)
    return {version: sorted(lengths, reverse=True) for version, lengths in found.items()}


def covering(prefix: Prefix, lengths: Lengths) -> Iterator[Prefix]:
    """The prefix itself and those that cover it, the longest first, of the given lengths only."""
    for length in lengths[prefix.version]:
        if length <= prefix.prefixlen:
            yield prefix.supernet(new_prefix=length)


class PrefixIndex(Generic[Value]):
    """Values by prefix, found by any prefix inside; only lengths that occur are tried."""

    def __init__(self, entries: Iterable[tuple[Key, Value]]) -> None:
        """Index the entries; of two with one prefix the later counts."""
        self._values = dict(entries)
        self._masks: dict[int, list[tuple[int, int]]] = {version: [] for version in ADDRESS_BITS}
        for version, length in sorted({(key[0], key[2]) for key in self._values}, reverse=True):
            bits = ADDRESS_BITS[version]
            self._masks[version].append((length, (1 << bits) - (1 << bits - length)))

    def covering(self, prefix: Key) -> Iterator[Value]:
        """Values of the prefix itself and of those that cover it, the longest first."""
        version, address, own_length = prefix
        for length, mask in self._masks[version]:
            if length <= own_length:
                value = self._values.get((version, address & mask, length))
                if value is not None:
                    yield value

    def nearest(self, prefix: Key) -> Value | None:
        """The value of the longest prefix that covers this one, or is it; None where none does."""
        version, address, own_length = prefix
        for length, mask in self._masks[
            version
        ]:  # not by `covering`: a generator costs more than the search
            if length <= own_length:
                value = self._values.get((version, address & mask, length))
                if value is not None:
                    return value
        return None
