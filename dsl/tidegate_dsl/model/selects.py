"""What is selected."""

from dataclasses import dataclass
from typing import Literal

from .clauses import Bound, Clause, Condition

TrafficClass = Literal["client", "pop_to_pop", "intra_pop", "origin"]


@dataclass(frozen=True, slots=True)
class Rank:
    """Which of a POP's observed prefixes are members of a window, by the measured metric.

    Attributes:
        side: which end of the ranking `share_ppm` is taken from.
        share_ppm: the share of the observed prefixes; None where only `absolute` counts.
        absolute: a comparison of the measured metric that must hold as well; None where only the share counts.
            One of the two is there.
        clause: where it stands.
    """

    side: Literal["bottom", "top"]
    share_ppm: int | None
    absolute: Condition | None
    clause: Clause


@dataclass(frozen=True, slots=True)
class Select:
    """Which client prefixes count as persistently slow, per POP."""

    name: str
    clause: Clause
    metric: str
    prefix_length_ipv4: int
    prefix_length_ipv6: int
    traffic: TrafficClass
    where: tuple[Condition, ...]
    over_us: int
    step_us: int
    rank: Rank
    min_duty_cycle: Bound | None
    max_flap_rate: Bound | None
    min_windows: Bound | None
    min_samples: Bound | None
    exclude: tuple[Condition, ...]
    hold_us: int
    hold: Clause | None

    @property
    def windows(self) -> int:
        """Windows in the lookback; the checker keeps it within 1 to 128."""
        return self.over_us // self.step_us
