"""Generations come, are confirmed, and go back: the ledger on disk and the kernel, changed together.

The next ledger is on the disk before the kernel is touched, and becomes the one that counts after: where the disk is
full nothing changes, and a daemon that is killed in between starts with the generation before.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.steer.boottime import Moment, this_moment
from tidegate_edge.steer.generations import (
    Ledger,
    Number,
    confirm,
    confirmed,
    drop_others,
    on_probation,
    read_ledger,
    recall,
    rolled_back,
    stage_ledger,
    store,
)
from tidegate_edge.steer.steering import Steering

from .documents import Probation
from .reconcile import Applied, Reconciler


class Lifecycle:
    """The generations of one host.

    Args:
        reconciler: of the kernel.
        state: directory of the generations.
        clock: the time.

    Attributes:
        reverted: generations that were not confirmed in time since the start.
        trouble: why a generation could not come or go by itself, until one does.
    """

    def __init__(
        self, reconciler: Reconciler, state: Path, clock: Callable[[], Moment] = this_moment
    ) -> None:
        self.reconciler: Final = reconciler
        self.reverted = 0
        self.trouble: str | None = None
        self._state: Final = state
        self._clock: Final = clock
        self._ledger = Ledger()
        self._resumed = False

    @property
    def due_ns(self) -> int | None:
        """CLOCK_BOOTTIME of the deadline, None where nothing waits to be confirmed."""
        pending = self._ledger.pending
        return pending.deadline.since_ns if pending else None

    def probation(self) -> Probation | None:
        """The generation that waits to be confirmed."""
        pending, steering = self._ledger.pending, self.reconciler.steering
        if pending is None or steering is None:
            return None
        return Probation(steering.generation, pending.deadline.left_ns(self._clock()), self._previous())

    def resume(self) -> None:
        """Go on from the disk: the last confirmed generation; one on probation did not live to be confirmed.

        Where nothing was ever applied, the kernel stays as it is. Once it succeeded, or a generation came, a further
        call does nothing.

        Raises:
            Failure: the disk or the kernel says no; the kernel stays as it is.
        """
        if self._resumed:
            return
        self._ledger = read_ledger(self._state)
        if self._ledger.pending is not None:
            self.roll_back()
            self.reverted += 1
        elif self._ledger.begun:
            self.reconciler.apply(self._recall(self._ledger.current))
        self._resumed, self.trouble = True, None

    def apply(self, steering: Steering, text: bytes, probation_ns: int | None) -> Applied:
        """Apply a generation, for good or, where `probation_ns` is given, until then.

        Raises:
            Failure: nothing was changed, and why.
        """
        number = store(text, self._ledger, self._state)
        if probation_ns is None:
            ledger = confirmed(self._ledger, number)
        else:
            ledger = on_probation(self._ledger, number, self._clock().after(probation_ns))
        try:
            return self._change(ledger, steering)
        except Failure:
            drop_others(self._ledger, self._state)
            raise

    def confirm(self) -> str:
        """Keep the generation on probation; returns its name.

        Raises:
            Failure: none is, or the disk can't keep it.
        """
        self._write(confirm(self._ledger))
        return self.reconciler.steering.generation if self.reconciler.steering else ""

    def roll_back(self) -> Applied:
        """Go back to the generation before.

        Raises:
            Failure: there is none, or nothing was changed, and why.
        """
        ledger = rolled_back(self._ledger)
        return self._change(ledger, self._recall(ledger.current))

    def foresee_roll_back(self) -> tuple[Steering | None, Applied]:
        """The generation before, None: nothing of ours, and what `roll_back` would change; changes nothing.

        Raises:
            Failure: there is none, or the host can't be read.
        """
        steering = self._recall(rolled_back(self._ledger).current)
        return steering, self.reconciler.foresee(steering)

    def revert_if_due(self) -> bool:
        """Go back where a generation was not confirmed in time; says whether it was so.

        Raises:
            Failure: it can't be; it is tried again with the next call.
        """
        pending = self._ledger.pending
        if pending is None or pending.deadline.left_ns(self._clock()):
            return False
        self.roll_back()
        self.reverted += 1
        return True

    def flush(self) -> Applied:
        """Leave nothing of ours in the kernel; `roll_back` brings the last generation again.

        Raises:
            Failure: the kernel refuses, or the disk can't keep it.
        """
        return self._change(confirmed(Ledger(self._ledger.confirmed), None), None)

    def _change(self, ledger: Ledger, steering: Steering | None) -> Applied:
        staged, before = stage_ledger(ledger, self._state), self.reconciler.steering
        try:
            applied = self.reconciler.apply(steering)
        except Failure:
            staged.drop()
            raise
        try:
            staged.commit()
        except Failure:
            if self._resumed:  # else nobody knows what was there before
                with suppress(Failure):
                    self.reconciler.apply(before)
            raise
        self._ledger, self._resumed, self.trouble = ledger, True, None
        drop_others(ledger, self._state)
        return applied

    def _write(self, ledger: Ledger) -> None:
        stage_ledger(ledger, self._state).commit()
        self._ledger = ledger
        drop_others(ledger, self._state)

    def _recall(self, number: Number) -> Steering | None:
        return None if number is None else recall(number, self._state)

    def _previous(self) -> str | None:
        last = self._ledger.confirmed[-1] if self._ledger.confirmed else None
        try:
            steering = self._recall(last)
        except Failure:
            return None
        return steering.generation if steering else None
