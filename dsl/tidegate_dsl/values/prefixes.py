"""Prefixes in a policy."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from tidegate_dsl.diagnostics import Findings, replacement
from tidegate_dsl.syntax import tree

Network = IPv4Network | IPv6Network


@lru_cache(maxsize=4_096)  # while a file is edited, nearly every prefix is as it was
def _networks(text: str) -> tuple[Network, Network]:
    """The network that holds an address or prefix, and that of its address alone.

    Raises:
        ValueError: it is neither.
    """
    return ip_network(text, strict=False), ip_network(text.partition("/")[0])


def check_prefix(name: tree.Name, findings: Findings) -> Network | None:
    """The network; None where it is reported."""
    example = "write one such as `192.0.2.0/24`"
    try:
        network, address = _networks(name.text)
    except ValueError:
        findings.error("T107", f"`{name.text}` is no network prefix", name.span, help=example)
        return None
    if "/" not in name.text:
        findings.error("T107", f"`{name.text}` has no prefix length", name.span, help=example)
        return None
    if int(network.network_address) != int(address.network_address):
        findings.error(
            "T107",
            f"`{name.text}` has host bits",
            name.span,
            help=f"write `{network}`",
            fix=replacement(name.span, str(network)),
        )
        return None
    return network


def order(network: Network) -> tuple[int, int, int]:
    """Family, address, length."""
    return network.version, int(network.network_address), network.prefixlen
