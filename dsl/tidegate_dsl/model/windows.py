"""Initial windows: learned between POPs, and set as they stand."""

from dataclasses import dataclass
from typing import Literal

from .clauses import Clause


@dataclass(frozen=True, slots=True)
class Learn:
    """How far learned initial windows between POPs may grow (Riptide).

    Attributes:
        name: the block's name.
        clause: where it stands.
        pops: where, sorted.
        smooth_ppm: weight of the newest observation.
        every_us: interval between two observations.
        initcwnd_min: least learned window, segments.
        initcwnd_max: most, segments.
        expire_us: life of what was learned without a new observation.
        toward: which destinations.
        hold_out_ppm: share of the destinations that are observed and get no learned window; 0: none.
        initrwnd: receive window that the destinations are offered at first, segments; None: the kernel's own.
    """

    name: str
    clause: Clause
    pops: tuple[str, ...]
    smooth_ppm: int
    every_us: int
    initcwnd_min: int
    initcwnd_max: int
    expire_us: int
    toward: tuple[Literal["peer_pops", "origins"], ...]
    hold_out_ppm: int
    initrwnd: int | None


@dataclass(frozen=True, slots=True)
class Initcwnd:
    """An initial window that is set as it stands, for prefixes that the policy names.

    Attributes:
        name: the block's name.
        clause: where it stands.
        prefixes: in address order; `0.0.0.0/0` is all of IPv4 and `::/0` all of IPv6.
        pops: where, sorted.
        segments: the window.
    """

    name: str
    clause: Clause
    prefixes: tuple[str, ...]
    pops: tuple[str, ...]
    segments: int
