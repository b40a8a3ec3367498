"""What the bounds of `require` leave of all membership strings of one length (SPEC.md, "Persistence").

The bounds alone never contradict each other: the string of members only is observed in every window, has the
greatest duty cycle and no flip. Whether one of them never decides anything is counted here, exactly.
"""

from dataclasses import dataclass, replace

from tidegate_dsl.model import PPM, Select, bound_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is required, with what counts where nothing is.

    Attributes:
        lookback: windows in the lookback.
        windows: least windows that are observed; a prefix needs one.
        duty_ppm: least share of the lookback's windows in which it is a member.
        flap_ppm: greatest share of the pairs that flip.
    """

    lookback: int
    windows: int
    duty_ppm: int
    flap_ppm: int

    @property
    def members(self) -> int:
        """Least member windows: the duty cycle's, and one in any case."""
        return max(1, -(-self.duty_ppm * self.lookback // PPM))


def bounds_of(select: Select, *, selected: bool) -> Bounds:
    """The bounds that count for a prefix that is selected already, or for one that is not."""
    return Bounds(
        lookback=select.windows,
        windows=max(1, bound_of(select.min_windows, 1, selected=selected)),
        duty_ppm=bound_of(select.min_duty_cycle, 0, selected=selected),
        flap_ppm=bound_of(select.max_flap_rate, PPM, selected=selected),
    )


def greatest_flips(lookback: int, members: int) -> int:
    """Flips of the string with the greatest flap rate, of `lookback - 1` pairs, with at least so many members.

    Every window that is no member can stand between two members and give two flips. A window that is not observed
    gives none, and as it separates no more members than a non-member does, the greatest rate needs none.
    """
    return min(lookback - 1, 2 * (lookback - members))


def fewest_members(lookback: int, windows: int, flap_ppm: int) -> int:
    """Members of the string with the fewest, at least one, that is observed and flips as the bounds want it.

    One member at the end of the string flips once, or never beside a window that is not observed.
    """
    every_window, pairs = windows == lookback, lookback - 1
    return lookback if every_window and pairs and flap_ppm * pairs < PPM else 1


def idle_requirements(select: Select) -> tuple[str, ...]:
    """The requirements that never strike: without them the same strings qualify, to enter and to stay.

    Each is judged beside those that are not named before it, so that all that are named can go together.
    """
    states = [bounds_of(select, selected=selected) for selected in (False, True)]
    idle = []
    for reason, bound, without in (
        ("windows", select.min_windows, {"windows": 1}),
        ("flap_rate", select.max_flap_rate, {"flap_ppm": PPM}),
        ("duty_cycle", select.min_duty_cycle, {"duty_ppm": 0}),
    ):
        if bound is not None and all(_implied(reason, state) for state in states):
            idle.append(reason)
            states = [replace(state, **without) for state in states]
    return tuple(idle)


def _implied(reason: str, bounds: Bounds) -> bool:
    """Whether every string that the other bounds let pass fulfils this one."""
    if (
        reason == "windows"
    ):  # a member window is observed, and one that is observed need not be more than that
        return bounds.windows <= bounds.members
    if reason == "flap_rate":
        flips = greatest_flips(bounds.lookback, bounds.members)
        return flips * PPM <= bounds.flap_ppm * (bounds.lookback - 1)
    return bounds.members <= fewest_members(bounds.lookback, bounds.windows, bounds.flap_ppm)
