"""Claims to settings: what connections of each prefix shall have.

A route carries its own settings only; it inherits none from a route that covers it (measured on Linux 6.18), and a
lookup in the BPF program's trie ends at the longest prefix. So where claims nest, the inner prefix's settings must
name what the outer one sets as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal

from .prefix import Prefix, covering, lengths_of, order
from .steering import Claim, Steering

Attribute = Literal["congestion_control", "initcwnd", "initrwnd"]

CANNOT_GATE: Final = "this host steers by routes, which cannot gate by transfer size"
CANNOT_LEARN: Final = "this agent does not learn initial windows"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a prefix shall have; None: as the kernel or the cloned route has it.

    Attributes:
        congestion_control: an algorithm's name.
        initcwnd: segments.
        initrwnd: segments.
        min_bytes: bytes that a connection must pass before the algorithm applies; 0: from its start.
    """

    congestion_control: str | None = None
    initcwnd: int | None = None
    initrwnd: int | None = None
    min_bytes: int = 0

    def stated(self) -> dict[Attribute, str | int]:
        """The settings that are not None, by name."""
        values: dict[Attribute, str | int | None] = {
            "congestion_control": self.congestion_control,
            "initcwnd": self.initcwnd,
            "initrwnd": self.initrwnd,
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class NotApplied:
    """One attribute of a claim that the kernel is not made to match, and why."""

    prefix: Prefix
    attribute: Attribute
    reason: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings by prefix, in the order of prefixes, and what cannot be had."""

    settings: Mapping[Prefix, Settings]
    not_applied: tuple[NotApplied, ...]


NOTHING_WANTED: Final = Wanted({}, ())


def want(steering: Steering, *, gates: bool = False) -> Wanted:
    """Merge nested claims attribute by attribute, the longest prefix first.

    Where the host can't gate by transfer size, a claim whose algorithm needs it keeps its windows; its algorithm
    applies from the first byte where the claim's `ungated_fallback` says so, else it counts as not claimed. A prefix
    of which nothing is left has no entry: the covering claim serves it.

    Args:
        steering: the claims.
        gates: whether the host can apply an algorithm from so many bytes on.
    """
    claims = sorted(steering.claims, key=lambda claim: order(claim.prefix))
    stated = {claim.prefix: left for claim in claims if (left := _possible(claim, gates)).stated()}
    lengths = lengths_of(stated)
    settings = {
        prefix: reduce(_fill, (stated[each] for each in covering(prefix, lengths) if each in stated))
        for prefix in stated
    }
    return Wanted(
        settings,
        (
            *(
                NotApplied(c.prefix, "congestion_control", CANNOT_GATE)
                for c in claims
                if _needs_gate(c) and not gates
            ),
            *(NotApplied(p, "initcwnd", CANNOT_LEARN) for p in sorted(steering.learn_toward, key=order)),
        ),
    )


def _needs_gate(claim: Claim) -> bool:
    return claim.min_bytes > 0 and not claim.ungated_fallback


def _possible(claim: Claim, gates: bool) -> Settings:
    if gates:
        return Settings(claim.congestion_control, claim.initcwnd, claim.initrwnd, claim.min_bytes)
    algorithm = None if _needs_gate(claim) else claim.congestion_control
    return Settings(algorithm, claim.initcwnd, claim.initrwnd)


def _fill(inner: Settings, outer: Settings) -> Settings:
    algorithm = inner if inner.congestion_control else outer  # its size threshold comes with it
    return Settings(
        algorithm.congestion_control,
        inner.initcwnd or outer.initcwnd,
        inner.initrwnd or outer.initrwnd,
        algorithm.min_bytes,
    )
