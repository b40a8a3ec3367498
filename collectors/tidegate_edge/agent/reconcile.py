"""The kernel kept at what one generation wants: applied, read back, and mended where others changed it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.starved import without_bbr
from tidegate_edge.steer.algorithms import read_default, require_algorithms, require_default_allowed
from tidegate_edge.steer.backend import Choice, Frozen, Held, Outcome
from tidegate_edge.steer.claims import NOTHING_WANTED, Settings, Wanted, want
from tidegate_edge.steer.default import DefaultChange, decide_default, make_default, read_memory
from tidegate_edge.steer.prefix import Prefix
from tidegate_edge.steer.steering import Steering

# What the kernel refused may be possible later for reasons that no event tells.
RETRY_NS: Final = 30 * 10**9


@dataclass(frozen=True, slots=True)
class Drift:
    """What was mended since the start.

    Attributes:
        repaired: times that the kernel was found with something else than was left in it, and was mended.
        followed: times that the host's routing changed and the settings were made anew for it.
        last: what the last repair mended.
    """

    repaired: int = 0
    followed: int = 0
    last: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A change of the kernel: what it held before and after, and what came of what was wanted."""

    wanted: Wanted
    before: Mapping[Prefix, Settings]
    after: Mapping[Prefix, Settings]
    default: DefaultChange
    outcome: Outcome | None = None


class Reconciler:
    """Holds what the kernel is to have.

    Args:
        choice: the backends.
        state: directory in which the host's own default algorithm is remembered.

    Attributes:
        instead: the algorithm that takes BBR's place; None: none does.
    """

    def __init__(self, choice: Choice, state: Path) -> None:
        self.choice: Final = choice
        self.backend: Final = choice.backend
        self.steering: Steering | None = None
        self.learned: Mapping[Prefix, int] = {}
        self.wanted: Wanted = NOTHING_WANTED
        self.outcome: Outcome | None = None
        self.drift = Drift()
        self.trouble: str | None = None
        self.instead: str | None = None
        self._state: Final = state
        self._left: Mapping[Prefix, Settings] | None = None
        self._tried_ns = 0

    def foresee(self, steering: Steering | None) -> Applied:
        """What `apply` would do; changes nothing.

        Raises:
            Failure: the host lacks an algorithm, or can't be read.
        """
        wanted = self._want(steering, self._still_learned(steering))
        held = self.backend.read().settings
        return Applied(wanted, held, wanted.settings, self.default(steering))

    def apply(self, steering: Steering | None) -> Applied:
        """Have the kernel hold a generation, None: nothing of ours.

        Raises:
            Failure: the host lacks what it needs, or refuses. The kernel then holds the generation before.
        """
        learned = self._still_learned(steering)
        wanted = self._want(steering, learned)
        before = self.backend.read().settings
        kept, kept_wanted = self.steering, self.wanted
        try:
            outcome = self._write(steering, wanted)
            default = self.default(steering)
            make_default(default, self._state)
            after = self.backend.read().settings
        except Failure:
            # Where there was no generation, nobody knows what belongs there: it is left as it is.
            if self._left is not None:
                with suppress(Failure):  # the next look tries again
                    self._write(kept, kept_wanted)
            raise
        self.steering, self.learned, self.wanted, self.outcome = steering, learned, wanted, outcome
        self._left, self.trouble = after, None
        return Applied(wanted, before, after, default, outcome)

    def learn(self, learned: Mapping[Prefix, int]) -> None:
        """Have the kernel hold the windows that were learned, beside the claims.

        Raises:
            Failure: the kernel refuses.
        """
        if self.steering is None or learned == self.learned:
            return
        self._change(self.steering, learned)
        self.learned = learned

    def replace_bbr(self, instead: str | None) -> None:
        """Have new connections start with another algorithm wherever the generation says BBR.

        Args:
            instead: the algorithm; None: BBR again.

        Raises:
            Failure: the kernel refuses; it is to be tried again.
        """
        if instead == self.instead:
            return
        before, self.instead = self.instead, instead
        try:
            if self.steering is not None:
                self._change(self.steering, self.learned)
                make_default(self.default(self.steering), self._state)
        except Failure:
            self.instead = before
            raise

    def look(self, now_ns: int, *, moved: bool) -> None:
        """Read the kernel back, and mend what is not as it was left; tells of its trouble in `trouble`.

        Args:
            now_ns: the time.
            moved: whether the host's routing changed since the last look.
        """
        if self._left is None:
            return
        try:
            self._look(now_ns, moved)
        except Failure as failure:
            self.trouble = failure.message
        else:
            self.trouble = None

    def leave(self) -> None:
        """Take all that is ours out of the kernel, and put the host's default back.

        Raises:
            Failure: the kernel refuses.
        """
        self.backend.remove()
        make_default(self.default(None), self._state)

    def default(self, steering: Steering | None) -> DefaultChange:
        """What a generation makes of the host's default algorithm.

        Raises:
            Failure: what was remembered of it can't be read.
        """
        stated = self._stated(steering) if steering else None
        wanted = stated.default_congestion_control if stated else None
        return decide_default(wanted, read_default(), read_memory(self._state))

    @property
    def left(self) -> Mapping[Prefix, Settings]:
        """What the kernel took when it was last written: what is wanted, without what this host can't have."""
        return self._left or {}

    def held(self) -> Held:
        """The kernel read back.

        Raises:
            Failure: it does not answer.
        """
        return self.backend.read()

    def _look(self, now_ns: int, moved: bool) -> None:
        mended = self._differences()
        retry = self.left != self.wanted.settings and now_ns - self._tried_ns >= RETRY_NS
        if mended or moved or retry:
            self._tried_ns = now_ns
            before = self.backend.read()
            self.outcome = self._write(self.steering, self.wanted)
            after = self.backend.read()
            self._left = after.settings
            if (before.attached, before.settings) == (after.attached, after.settings):
                mended = ()  # nothing could be mended: a link is down, say
        default = self.default(self.steering)
        if default.before != default.after:
            make_default(default, self._state)
            mended = (*mended, f"default congestion control {default.before}")
        if mended:
            self.drift = replace(self.drift, repaired=self.drift.repaired + 1, last=mended)
        elif moved:
            self.drift = replace(self.drift, followed=self.drift.followed + 1)

    def _differences(self) -> tuple[str, ...]:
        """How the kernel is not as it was left, in words."""
        if self.steering and isinstance(self.backend, Frozen):
            stands = self.backend.standing()
            if stands.attached and stands.generation == self.steering.generation:
                return ()
        found, left = self.backend.read(), self.left
        if self.steering and not found.attached:
            return (f"{self.backend.name} was detached",)
        had, has = left.keys(), found.settings.keys()
        gone, more = had - has, has - had
        other = {prefix for prefix in had & has if left[prefix] != found.settings[prefix]}
        kinds = (("missing", gone), ("surplus", more), ("changed", other))
        return tuple(f"{len(prefixes)} {kind}" for kind, prefixes in kinds if prefixes)

    def _change(self, steering: Steering, learned: Mapping[Prefix, int]) -> None:
        wanted = self._want(steering, learned)
        if wanted.settings != self.wanted.settings:
            self.outcome = self._write(steering, wanted)
            self._left = self.backend.read().settings
        self.wanted = wanted

    def _write(self, steering: Steering | None, wanted: Wanted) -> Outcome | None:
        if steering is None:
            self.backend.remove()
            return None
        stands = self.backend.standing() if isinstance(self.backend, Frozen) else self.backend.read()
        if not stands.attached:
            self.backend.attach()
        return self.backend.apply(steering.generation, wanted.settings)

    def _still_learned(self, steering: Steering | None) -> Mapping[Prefix, int]:
        """Windows that hold under a generation: others' bounds were not these, and the next interval learns anew."""
        same = steering and self.steering and steering.learn == self.steering.learn
        return self.learned if same else {}

    def _want(self, steering: Steering | None, learned: Mapping[Prefix, int]) -> Wanted:
        if steering is None:
            return NOTHING_WANTED
        require_algorithms(steering.algorithms)
        if steering.default_congestion_control:
            require_default_allowed(steering.default_congestion_control)
        return want(self._stated(steering), learned, gates=self.backend.gates)

    def _stated(self, steering: Steering) -> Steering:
        return without_bbr(steering, self.instead) if self.instead else steering
