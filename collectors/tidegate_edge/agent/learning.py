"""Riptide in the daemon: once each interval, what open connections say becomes windows for new ones."""

import json
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.riptide import (
    Observer,
    State,
    as_document,
    claims,
    from_document,
    learn,
    restarts_after_idle,
)
from tidegate_edge.steer.boottime import boot_id
from tidegate_edge.steer.durable import write_whole
from tidegate_edge.steer.steering import Learn

from .protocol import Document
from .reconcile import Reconciler

FILE: Final = "learned.json"
READABLE: Final = 0o644
# What a crash costs is this much of learning; a disk is not written to each second.
KEEP_NS: Final = 60 * 10**9
IDLE_NS: Final = 10**9


class Learning:
    """What was learned, and where it is kept.

    Args:
        reconciler: takes the windows; its generation says how they are learned.
        state: directory of the file.
    """

    def __init__(self, reconciler: Reconciler, state: Path) -> None:
        self._reconciler: Final = reconciler
        self._path: Final = state / FILE
        self._settings: Learn | None = None
        self._observer: Observer | None = None
        self._state = State()
        self._now_us = 0
        self._kept_ns = 0
        self.trouble: str | None = None

    @property
    def every_ns(self) -> int:
        """From one interval to the next."""
        return self._settings.every_us * 1000 if self._settings else IDLE_NS

    def step(self, now_ns: int) -> None:
        """One interval; what fails is told in `trouble`, and the windows stay as they are.

        Args:
            now_ns: CLOCK_BOOTTIME.
        """
        steering = self._reconciler.steering
        self._now_us = now_ns // 1000
        try:
            self._follow(steering.learn if steering else None)
            if self._settings and self._observer:
                seen = self._observer.observe()
                self._state = learn(self._state, seen, self._settings, self._now_us)
                self._reconciler.learn(claims(self._state, self._settings))
                self._keep(now_ns)
        except Failure as failure:
            self.trouble = failure.message
        else:
            self.trouble = None

    def document(self) -> Document | None:
        """What was learned; None where the generation does not learn."""
        if self._settings is None:
            return None
        return {
            **as_document(self._state, self._settings, self._now_us),
            "trouble": self.trouble,
            "restarts_after_idle": restarts_after_idle(),
        }

    def close(self) -> None:
        """Give back what the kernel holds for it."""
        if self._observer:
            self._observer.close()
        self._observer = None

    def _follow(self, settings: Learn | None) -> None:
        if settings == self._settings:
            return
        self.close()
        # The first generation after a start goes on from the file; a change of settings from what is learned.
        if settings and self._settings is None:
            self._state = self._recalled(settings)
        if settings:
            self._observer = Observer(settings.toward)
        self._settings = settings

    def _recalled(self, settings: Learn) -> State:
        try:
            kept = json.loads(self._path.read_bytes())
            # How long a host was off, nobody knows; the clock of one boot tells how long only the daemon was.
            if kept["boot"] != boot_id():
                return State()
            return from_document(kept, settings, int(kept["at_us"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Failure):
            return State()  # what was learned is learned again

    def _keep(self, now_ns: int) -> None:
        if self._settings and now_ns - self._kept_ns >= KEEP_NS:
            self._kept_ns = now_ns
            learned = as_document(self._state, self._settings, self._now_us)
            document = {"boot": boot_id(), "at_us": self._now_us, **learned}
            write_whole(self._path, json.dumps(document).encode(), READABLE)
