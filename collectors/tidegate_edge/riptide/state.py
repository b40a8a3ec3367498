"""What is known of each destination, and of each connection since it was first seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tidegate_edge.steer.prefix import Prefix
from tidegate_edge.steer.steering import Learn

Numbers: TypeAlias = npt.NDArray[np.uint64]

Grouping = Literal["host", "prefix"]
"""What a destination is: one address (/32, /128), or the longest prefix of `toward` that holds it."""

REASONS: Final = ("lossy", "idle", "first_window", "app_limited", "echo")
"""Why a connection is left out, in the order in which they are asked; `evidence.weigh` says what each is."""

COUNTED, LOWERED, DAMAGED, BEYOND, EXPIRED, EVICTED = (
    "counted",
    "lowered",
    "damaged",
    "beyond",
    "expired",
    "evicted",
)
NOTHING_COUNTED: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys((COUNTED, LOWERED, *REASONS, DAMAGED, BEYOND, EXPIRED, EVICTED), 0)
)


@dataclass(frozen=True, slots=True)
class Mean:
    """The windows of one destination's connections, as a fraction: their sum in segments, and their count."""

    total: int
    count: int


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned of one destination.

    Attributes:
        window: segments, within the bounds.
        observed_us: when it was last observed, on the clock that `learn` is given.
        draw_ppm: place of the destination in the draw of the hold-out, 0 to 999,999.
    """

    window: int
    observed_us: int
    draw_ppm: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The connections of the last observation, sorted by cookie; columns of one length.

    Attributes:
        cookie: as the kernel numbers sockets.
        acked: bytes then.
        retransmitted: segments then.
        initial: the window that the destination's new connections had when this one was first seen, segments.
    """

    cookie: Numbers
    acked: Numbers
    retransmitted: Numbers
    initial: Numbers


_NOTHING_LEARNED: Final[Mapping[Prefix, Learned]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class State:
    """All that one learner knows; `State()` is the start.

    Attributes:
        learned: by destination.
        seen: the connections of the last observation; None before the first.
        counts: since the state began: connections that counted, that lowered, and that were left out, by reason;
            destinations that expired or made room; messages that were damaged; connections beyond the limit.
        by: what a destination is.
        settings: under which it was learned.
    """

    learned: Mapping[Prefix, Learned] = field(default_factory=lambda: _NOTHING_LEARNED)
    seen: Seen | None = None
    counts: Mapping[str, int] = field(default_factory=lambda: NOTHING_COUNTED)
    by: Grouping = "host"
    settings: Learn | None = None
