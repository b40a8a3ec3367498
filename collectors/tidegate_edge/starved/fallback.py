"""When new connections do without BBR on this host, and when they get it back. Pure.

It takes several looks in a row to fall back, and calm for a while to come back. Calm is judged by the host's health
alone: after a while no connection has BBR. A host that is short of CPU as soon as BBR is back waits longer each time.
"""

from dataclasses import dataclass, replace
from typing import Final

from .pressure import Pressed
from .signature import Signs

LOOKS: Final = 3  # in a row
LEAST_SHARE: Final = 5  # a fifth of the BBR connections that can be judged
PATIENCE: Final = 12  # calm looks before BBR comes back, at first
MOST_PATIENCE: Final = PATIENCE << 5
# A fall-back within so many times the patience after the last one's end doubles the patience.
SOON: Final = 5


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen in the time since the look before.

    Attributes:
        host: its health.
        sockets: None where the host was not pressed, so that nobody asked.
    """

    host: Pressed
    sockets: Signs | None = None

    @property
    def starves(self) -> bool:
        """Whether both say that BBR is short of CPU."""
        seen = self.sockets
        return (
            self.host.beyond()
            and seen is not None
            and seen.starved > 0
            and seen.starved * LEAST_SHARE >= seen.bbr
        )

    @property
    def calm(self) -> bool:
        """Whether the host is well below what counts as pressed."""
        return not self.host.beyond(1, 2)


@dataclass(frozen=True, slots=True)
class State:
    """Where the host stands; the counts are of looks.

    Attributes:
        fallen_back: new connections do without BBR.
        run: while BBR is in use: looks in a row that showed it starved; after a fall-back: calm looks in a row.
        patience: calm looks that it takes to come back.
        since: looks since the last change.
        times: fall-backs since the start.
        last: the last look, None before the first.
    """

    fallen_back: bool = False
    run: int = 0
    patience: int = PATIENCE
    since: int = 0
    times: int = 0
    last: Look | None = None


def step(state: State, look: Look) -> State:
    """The state after one more look."""
    seen = replace(state, last=look, since=state.since + 1)
    run = state.run + 1 if (look.calm if state.fallen_back else look.starves) else 0
    if state.fallen_back:
        return (
            replace(seen, run=run)
            if run < state.patience
            else replace(seen, fallen_back=False, run=0, since=0)
        )
    if run < LOOKS:
        return replace(seen, run=run)
    soon = state.times > 0 and seen.since <= SOON * state.patience
    patience = min(2 * state.patience, MOST_PATIENCE) if soon else PATIENCE
    return State(True, 0, patience, 0, state.times + 1, look)
