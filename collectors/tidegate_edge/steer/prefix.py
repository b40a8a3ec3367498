"""Prefixes: their order, and those that cover them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import TypeAlias

Prefix: TypeAlias = IPv4Network | IPv6Network
Lengths: TypeAlias = Mapping[int, Sequence[int]]
"""Prefix lengths by family (4 or 6), the longest first."""


def order(prefix: Prefix) -> tuple[int, int, int]:
    """Sort key: family, address, length."""
    return prefix.version, int(prefix.network_address), prefix.prefixlen


def lengths_of(prefixes: Iterable[Prefix]) -> Lengths:
    """The lengths that occur in each family: a search by prefix then tries few."""
    found: dict[int, set[int]] = {4: set(), 6: set()}
    for prefix in prefixes:
        found[prefix.version].add(prefix.prefixlen)
    return {version: sorted(lengths, reverse=True) for version, lengths in found.items()}


def covering(prefix: Prefix, lengths: Lengths) -> Iterator[Prefix]:
    """The prefix itself and those that cover it, the longest first, of the given lengths only."""
    for length in lengths[prefix.version]:
        if length <= prefix.prefixlen:
            yield prefix.supernet(new_prefix=length)
