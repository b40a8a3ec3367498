"""Prefixes in a policy."""

from ipaddress import IPv4Network, IPv6Network, ip_network

from . import syntax
from .diagnostics import Findings, replacement

Network = IPv4Network | IPv6Network


def check_prefix(name: syntax.Name, findings: Findings) -> Network | None:
    """The network; None where it is reported."""
    example = "write one such as `192.0.2.0/24`"
    try:
        network = ip_network(name.text, strict=False)
    except ValueError:
        findings.error("T107", f"`{name.text}` is no network prefix", name.span, help=example)
        return None
    if "/" not in name.text:
        findings.error("T107", f"`{name.text}` has no prefix length", name.span, help=example)
        return None
    if int(network.network_address) != int(ip_network(name.text.partition("/")[0]).network_address):
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
