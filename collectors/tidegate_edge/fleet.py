"""fleet.json: whose prefixes are whose, read and checked against its contract."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from .errors import Failure
from .sockets.traffic import INTRA_POP, NEAR, ORIGIN, POP_TO_POP, Classifier, Network

ERRORS_SHOWN: Final = 5
WAY_OUT: Final = "write it again with `tidegate fleet`; the contract is schemas/fleet.schema.json"


@dataclass(frozen=True, slots=True)
class Fleet:
    """POPs with their hosts and own prefixes, and the origins.

    Attributes:
        hosts: names of the hosts of each POP.
        own: the own prefixes of each POP.
        origins: prefixes of origins.
    """

    hosts: Mapping[str, tuple[str, ...]]
    own: Mapping[str, tuple[Network, ...]]
    origins: tuple[Network, ...]

    def pop_of(self, host: str) -> str | None:
        """The POP that lists the host, by its full name or the first label of it."""
        label = host.partition(".")[0]
        return next((pop for pop, hosts in self.hosts.items() if host in hosts or label in hosts), None)

    def classifier(self, pop: str) -> Classifier:
        """How a collector in `pop` classifies traffic.

        Of prefixes of the same length this POP's own count most, then those of other POPs, then origins.

        Raises:
            KeyError: there is no such POP.
        """
        prefixes = [(prefix, ORIGIN) for prefix in self.origins]
        prefixes += [(prefix, POP_TO_POP) for name in self.own if name != pop for prefix in self.own[name]]
        prefixes += [(prefix, INTRA_POP) for prefix in (*NEAR, *self.own[pop])]
        return Classifier(prefixes)


def read_fleet(path: Path) -> Fleet:
    """Read and check a fleet.json.

    Raises:
        Failure: the file is missing, is no JSON, breaks its contract, or has a prefix with host bits. Names up
            to five places.
    """
    document = _read(path)
    broken = [f"{path}: {text}" for text in islice(_mistakes(document), ERRORS_SHOWN)]
    if broken:
        raise Failure("\n".join(broken), help=WAY_OUT)
    pops = document["pops"]
    return Fleet(
        hosts={name: tuple(pop["hosts"]) for name, pop in pops.items()},
        own={name: tuple(ip_network(prefix) for prefix in pop["own_prefixes"]) for name, pop in pops.items()},
        origins=tuple(ip_network(prefix) for prefix in document["origins"]),
    )


def _read(path: Path) -> Any:  # noqa: ANN401 — JSON has no static type before its schema is checked
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", help=WAY_OUT) from error
    except ValueError as error:
        raise Failure(f"{path}: no JSON: {error}", help=WAY_OUT) from error


def _mistakes(document: Any) -> Iterator[str]:  # noqa: ANN401
    schema = resources.files("tidegate_edge") / "schemas" / "fleet.schema.json"
    broken = False
    for error in Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).iter_errors(document):
        broken = True
        yield f"{error.json_path}: {error.message}"
    if broken:
        return
    for path, prefix in _prefixes(document):
        try:
            ip_network(prefix)
        except ValueError as error:
            yield f"{path}: {error}"


def _prefixes(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    for index, prefix in enumerate(document["origins"]):
        yield f"$.origins[{index}]", prefix
    for name, pop in document["pops"].items():
        for index, prefix in enumerate(pop["own_prefixes"]):
            yield f"$.pops.{name}.own_prefixes[{index}]", prefix
