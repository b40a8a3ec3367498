"""BBR that is short of CPU, in the daemon: a look every few seconds, and new connections do without it meanwhile."""

from dataclasses import asdict
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.starved import Look, Observer, Pressed, State, is_bbr, step
from tidegate_edge.steer.algorithms import require_algorithms

from .protocol import Document
from .reconcile import Reconciler


class Starving:
    """What was seen of it, and what the kernel was told.

    Args:
        reconciler: whose generation may say BBR.
        instead: the algorithm that takes BBR's place; None: none does, and nobody looks.
        every_ns: from one look to the next.

    Attributes:
        trouble: why the last look, or what it asked for, failed. A look that failed counts as one that saw nothing.
    """

    def __init__(self, reconciler: Reconciler, instead: str | None, every_ns: int) -> None:
        self.every_ns: Final = every_ns
        self.trouble: str | None = None
        self._reconciler: Final = reconciler
        self._instead: Final = instead
        self._observer: Observer | None = None
        self._state = State()

    def step(self) -> None:
        """One look."""
        try:
            self._look()
        except Failure as failure:
            self.trouble = failure.message
        else:
            self.trouble = None

    def document(self) -> Document | None:
        """Where the host stands; None where the generation does not say BBR, or nothing takes its place."""
        if self._observer is None:
            return None
        state = self._state
        return {
            "fallen_back": self._reconciler.instead is not None,
            "instead": self._instead,
            "times": state.times,
            "looks": state.run,
            "calm_looks_needed": state.patience,
            "seconds_between_looks": self.every_ns / 1e9,
            "last": asdict(state.last) if state.last else None,
            "trouble": self.trouble,
        }

    def _look(self) -> None:
        steering = self._reconciler.steering
        if self._instead is None or steering is None or not any(map(is_bbr, steering.algorithms)):
            self._reconciler.replace_bbr(None)
            self._observer, self._state = None, State(times=self._state.times)
            return
        if self._observer is None:
            require_algorithms((self._instead,))
            self._observer = Observer()
            return
        try:
            look = self._observer.observe()
        except Failure:
            self._decide(Look(Pressed(None, None)))
            raise
        self._decide(look)

    def _decide(self, look: Look) -> None:
        self._state = step(self._state, look)
        self._reconciler.replace_bbr(self._instead if self._state.fallen_back else None)
