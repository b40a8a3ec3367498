"""fleet.json: the inventory as the collector and the guard read it; the same inventory gives the same bytes."""

import ipaddress
from collections.abc import Iterable
from typing import Any

from tidegate_dsl.model import Fleet

from tidegate.errors import BAD_INPUT, Failure


def fleet_document(fleet: Fleet) -> dict[str, Any]:
    """The fleet under `schemas/fleet.schema.json`, sorted, with every prefix in canonical form.

    `contracts.sha256_digest` of it tells whether the inventory changed.

    Raises:
        Failure: an own prefix or an origin is not a network; names the POP and the value.
    """
    return {
        "schema_version": 1,
        "pops": {
            pop.name: {
                "groups": sorted(set(pop.groups)),
                "hosts": sorted(set(pop.hosts)),
                "own_prefixes": _canonical(pop.own_prefixes, f"own prefix of {pop.name}"),
            }
            for pop in sorted(fleet.pops, key=lambda pop: pop.name)
        },
        "origins": _canonical(fleet.origins, "origin"),
    }


def _canonical(prefixes: Iterable[str], what: str) -> list[str]:
    """Without host bits and duplicates, sorted by family, address and length.

    Host bits are cut off, not refused: the wider network is the one that is safe to treat as our own.
    """
    networks = set()
    for prefix in prefixes:
        try:
            networks.add(ipaddress.ip_network(prefix, strict=False))
        except ValueError as error:
            raise Failure(
                f"inventory: {what} `{prefix}` is not a network",
                help="write it as an address and a length, as in 192.0.2.0/24",
                exit_code=BAD_INPUT,
            ) from error
    ordered = sorted(
        networks, key=lambda network: (network.version, int(network.network_address), network.prefixlen)
    )
    return [str(network) for network in ordered]
