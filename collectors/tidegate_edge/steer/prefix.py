"""Prefixes: their order, and those that cover them."""

from collections.abc import Collection, Iterator
from ipaddress import IPv4Network, IPv6Network
from typing import TypeAlias

Prefix: TypeAlias = IPv4Network | IPv6Network


def order(prefix: Prefix) -> tuple[int, int, int]:
    """Sort key: family, address, length."""
    return prefix.version, int(prefix.network_address), prefix.prefixlen


def covering(prefix: Prefix, lengths: Collection[int]) -> Iterator[Prefix]:
    """The prefix itself and those that cover it, the longest first, of the given lengths only."""
    for length in sorted(lengths, reverse=True):
        if length <= prefix.prefixlen:
            yield prefix.supernet(new_prefix=length)
