"""The fleet: what the inventory says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pop:
    """One POP of the inventory."""

    name: str
    groups: tuple[str, ...]
    hosts: tuple[str, ...]
    own_prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """The inventory as policies see it; `pops` sorted by name."""

    pops: tuple[Pop, ...]
    origins: tuple[str, ...]
