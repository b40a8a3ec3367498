"""Claims and learned windows to settings: what connections of each prefix shall have.

A route carries its own settings only; it inherits none from a route that covers it (measured on Linux 6.18), and a
lookup in the BPF program's trie ends at the longest prefix. So where claims nest, the inner prefix's settings must
name what the outer one sets as well. The rules: dsl/SPEC.md, sections 6 to 8, and docs/claims.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal, get_args

from .prefix import Prefix, PrefixIndex, order
from .steering import Claim, Learn, Steering

Attribute = Literal["congestion_control", "initcwnd", "initrwnd"]
ATTRIBUTES: Final[tuple[Attribute, ...]] = get_args(Attribute)

CANNOT_GATE: Final = "this host steers by routes, which cannot gate by transfer size"
CANNOT_LEARN: Final = "initial windows are learned by `tidegate-agent run`, which is not at work here"
# Why one of two values for one prefix won; no other two sources name the same attribute.
PRECEDENCE: Final[Mapping[Attribute, str]] = {
    "initcwnd": "a learned window stands before one that is set by a prefix as long or shorter",
    "initrwnd": "a claim for the prefix stands before the receive window of the prefixes to learn toward",
}


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
class Conflict:
    """Two sources that name different values for one attribute of one prefix; nesting is none."""

    prefix: Prefix
    attribute: Attribute
    won: str | int
    lost: str | int
    reason: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings by prefix, in the order of prefixes, what cannot be had, and what had to yield."""

    settings: Mapping[Prefix, Settings]
    not_applied: tuple[NotApplied, ...]
    conflicts: tuple[Conflict, ...] = ()


NOTHING_WANTED: Final = Wanted({}, ())


def want(steering: Steering, learned: Mapping[Prefix, int] | None = None, *, gates: bool = False) -> Wanted:
    """Merge claims and learned windows, attribute by attribute, the longest prefix first.

    For one prefix a learned window comes before a claim's, and a claim's receive window before that of the prefixes
    to learn toward. An algorithm and its size threshold are one attribute.

    Where the host can't gate by transfer size, a claim whose algorithm needs it keeps its windows; its algorithm
    applies from the first byte where the claim's `ungated_fallback` says so, else it counts as not claimed. A prefix
    of which nothing is left has no entry: the covering claim serves it.

    Args:
        steering: the claims, and how to learn.
        learned: initial windows in segments by destination; None where nothing learns. They do not count where
            `steering` says nothing of learning.
        gates: whether the host can apply an algorithm from so many bytes on.
    """
    claims = sorted(steering.claims, key=lambda claim: order(claim.prefix))
    conflicts: list[Conflict] = []
    stated: dict[Prefix, Settings] = {}
    for layer in (
        _learned(steering.learn, learned or {}),
        {claim.prefix: left for claim in claims if (left := _possible(claim, gates)).stated()},
        _toward(steering.learn),
    ):
        for prefix, lower in layer.items():
            upper = stated.get(prefix)
            if upper is not None:
                conflicts += _conflicts(prefix, upper, lower)
            stated[prefix] = _fill(upper, lower) if upper is not None else lower
    keys = {prefix: order(prefix) for prefix in stated}
    index = PrefixIndex((keys[prefix], settings) for prefix, settings in stated.items())
    return Wanted(
        {
            prefix: reduce(_fill, index.covering(keys[prefix]))
            for prefix in sorted(stated, key=keys.__getitem__)
        },
        (
            *(
                NotApplied(c.prefix, "congestion_control", CANNOT_GATE)
                for c in claims
                if _needs_gate(c) and not gates
            ),
            *(
                NotApplied(prefix, "initcwnd", CANNOT_LEARN)
                for prefix in sorted(steering.learn_toward, key=order)
                if learned is None
            ),
        ),
        tuple(sorted(conflicts, key=lambda each: (order(each.prefix), each.attribute))),
    )


def _learned(learn: Learn | None, windows: Mapping[Prefix, int]) -> dict[Prefix, Settings]:
    # What an earlier generation learned must not outlive its end.
    return {prefix: Settings(initcwnd=window) for prefix, window in windows.items()} if learn else {}


def _toward(learn: Learn | None) -> dict[Prefix, Settings]:
    if learn is None or learn.initrwnd is None:
        return {}
    return dict.fromkeys(learn.toward, Settings(initrwnd=learn.initrwnd))


def _conflicts(prefix: Prefix, upper: Settings, lower: Settings) -> list[Conflict]:
    above, below = upper.stated(), lower.stated()
    return [
        Conflict(prefix, name, above[name], below[name], PRECEDENCE[name])
        for name in ATTRIBUTES
        if name in above and name in below and above[name] != below[name]
    ]


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
