"""Prefixes: their order, and those that cover them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, Generic, TypeAlias, TypeVar

Prefix: TypeAlias = IPv4Network | IPv6Network
Key: TypeAlias = tuple[int, int, int]
"""Family (4 or 6), address, length: compares and hashes ten times as fast as the `ipaddress` object."""
Value = TypeVar("Value")

ADDRESS_BITS: Final[Mapping[int, int]] = {4: 32, 6: 128}
PREFIXES_REMEMBERED: Final = 1 << 14  # 7 MB at most: the claims of a host


def order(prefix: Prefix) -> Key:
    """The prefix as a key, and how prefixes sort: family, address, length."""
    return prefix.version, int(prefix.network_address), prefix.prefixlen


def halves(prefix: Key) -> tuple[Key, ...]:
    """The two halves of a prefix; none of a single address."""
    version, address, length = prefix
    if length == ADDRESS_BITS[version]:
        return ()
    bit = 1 << ADDRESS_BITS[version] - length - 1
    return (version, address, length + 1), (version, address | bit, length + 1)


@lru_cache(maxsize=PREFIXES_REMEMBERED)
def prefix_of(address: bytes, length: int) -> Prefix:
    """The prefix of an address in network order, 4 or 16 bytes, without host bits.

    Raises:
        ValueError: host bits are set, or the length is more than the address has.
    """
    family = IPv4Network if len(address) == 4 else IPv6Network
    return family((int.from_bytes(address, "big"), length))


def apart(prefixes: Iterable[Prefix], others: Iterable[Prefix]) -> set[Prefix]:
    """The prefixes that overlap none of the others: neither covers the other."""
    mine = {order(prefix): prefix for prefix in prefixes}
    theirs = [order(prefix) for prefix in others]
    outer = PrefixIndex((key, key) for key in mine)
    inner = PrefixIndex((key, key) for key in theirs)
    overlapping = {key for each in theirs for key in outer.covering(each)}
    return {prefix for key, prefix in mine.items() if key not in overlapping and inner.nearest(key) is None}


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
        for length, mask in self._masks[version]:  # `covering`, a generator, costs more than the search
            if length <= own_length:
                value = self._values.get((version, address & mask, length))
                if value is not None:
                    return value
        return None
