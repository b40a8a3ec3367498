"""The daemon: one process, one thread, one loop that waits for whatever comes first."""

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import click

from tidegate_edge.errors import Failure
from tidegate_edge.steer.watch import Watch

from .answers import Told, answer
from .conversation import Conversation
from .notify import ALIVE, READY, STOPPING, notify, watchdog_ns
from .peer import Access, peer_of
from .protocol import Answer
from .reconcile import RETRY_NS

MOST_CONVERSATIONS: Final = 32
# The kernel is read back twice a second, or less often where that takes more than a tenth of a processor; a second
# at most lies between two looks.
LOOK_NS: Final = 500_000_000
LOOK_AT_LEAST_NS: Final = 1_000_000_000
LOOK_SHARE: Final = 10
STARVED_SHARE: Final = 100
# Routing that changes comes in bursts; they end before the settings are made anew.
SETTLE_NS: Final = 50_000_000


def now_ns() -> int:
    """CLOCK_BOOTTIME: deadlines pass while a host sleeps, and no change of the clock moves them."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Timer:
    """A step, and when it is due."""

    step: Callable[[], int]
    due_ns: int


class Daemon:
    """The loop.

    Args:
        told: what requests ask about.
        access: who may ask.
        listener: the agent's socket.
        watch: of the host's routing; None where what is held does not depend on it.
    """

    def __init__(self, told: Told, access: Access, listener: socket.socket, watch: Watch | None) -> None:
        self._told: Final = told
        self._access: Final = access
        self._listener: Final = listener
        self._selector: Final = selectors.DefaultSelector()
        self._talking: Final[dict[Conversation, None]] = {}  # the oldest first
        self._stopped = False
        self._moved = False
        if watch:
            self._selector.register(watch, selectors.EVENT_READ, lambda: self._routing_changed(watch))
        self._said = ""
        self._looked_ns = 0
        self._look: Final = Timer(self._look_at_kernel, 0)
        self._timers: Final = [
            self._look,
            Timer(self._learn, 0),
            Timer(self._look_for_starved, 0),
            Timer(self._revert, 0),
            Timer(self._resume, 0),
        ]
        self._alive_ns: Final = watchdog_ns()
        if self._alive_ns:
            self._timers.append(Timer(self._show_life, 0))

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT comes."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 512))
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        notify(READY, self._status_line())
        while not self._stopped:
            self._wait()
            self._drop()
        notify(STOPPING)
        for conversation in list(self._talking):
            self._end(conversation)

    def _wait(self) -> None:
        until = min(timer.due_ns for timer in self._timers) - now_ns()
        for key, _ in self._selector.select(max(until, 0) / 1e9):
            key.data()
        for timer in self._timers:
            if timer.due_ns <= now_ns() and not self._stopped:
                timer.due_ns = now_ns() + timer.step()

    def _stop(self, _number: int, _frame: object) -> None:
        self._stopped = True

    def _routing_changed(self, watch: Watch) -> None:
        if watch.changed():
            self._moved = True
            # No sooner than the last look allows: routing that never settles must not take the processor.
            soonest = max(now_ns() + SETTLE_NS, self._looked_ns)
            self._look.due_ns = min(self._look.due_ns, soonest)

    def _look_at_kernel(self) -> int:
        began = now_ns()
        moved, self._moved = self._moved, False
        self._told.lifecycle.reconciler.look(began, moved=moved)
        line = self._status_line()
        if line != self._said:
            notify(line)
            self._said = line
        took = now_ns() - began
        self._looked_ns = now_ns() + LOOK_SHARE * took
        return max(LOOK_NS, min(LOOK_SHARE * took, LOOK_AT_LEAST_NS - took))

    def _learn(self) -> int:
        began = now_ns()
        self._told.learning.step(began)
        return max(self._told.learning.every_ns - (now_ns() - began), 0)

    def _look_for_starved(self) -> int:
        began = now_ns()
        self._told.starving.step()
        # A host that is short of CPU does not need more to do.
        return max(self._told.starving.every_ns, STARVED_SHARE * (now_ns() - began))

    def _revert(self) -> int:
        lifecycle = self._told.lifecycle
        try:
            if lifecycle.revert_if_due():
                click.echo("tidegate-agent: not confirmed in time; the generation before is back", err=True)
        except Failure as failure:
            lifecycle.trouble = failure.message
        return LOOK_NS

    def _resume(self) -> int:
        lifecycle = self._told.lifecycle
        try:
            lifecycle.resume()
        except Failure as failure:
            lifecycle.trouble = failure.message
        return RETRY_NS

    def _show_life(self) -> int:
        notify(ALIVE)
        return (self._alive_ns or 0) // 3

    def _status_line(self) -> str:
        reconciler = self._told.lifecycle.reconciler
        generation = reconciler.steering.generation if reconciler.steering else "none"
        ails = self._told.lifecycle.trouble or reconciler.trouble
        trouble = f"; {ails}" if ails else ""
        if reconciler.instead:
            trouble = f", short of CPU: {reconciler.instead} instead of BBR{trouble}"
        return (
            f"STATUS=generation {generation} by {reconciler.backend.name}, "
            f"repaired {reconciler.drift.repaired} times{trouble}"
        ).replace("\n", " ")

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # whoever it was has gone, or no descriptor is left
            return
        try:
            peer = peer_of(connection)
        except OSError:
            connection.close()
            return
        conversation = Conversation(connection, peer, now_ns())
        self._talking[conversation] = None
        self._selector.register(conversation, selectors.EVENT_READ, lambda: self._receive(conversation))

    def _receive(self, conversation: Conversation) -> None:
        try:
            request = conversation.receive()
        except Failure as failure:
            said = Answer(failure.exit_code, None, failure.message, failure.help)
        except (OSError, EOFError):
            self._end(conversation)
            return
        else:
            if request is None:
                return
            said = answer(self._told, request, conversation.peer, self._access)
        conversation.answer(said)
        self._selector.modify(conversation, selectors.EVENT_WRITE, lambda: self._send(conversation))

    def _send(self, conversation: Conversation) -> None:
        try:
            done = conversation.send()
        except OSError:
            done = True
        if done:
            self._end(conversation)

    def _end(self, conversation: Conversation) -> None:
        self._selector.unregister(conversation)
        del self._talking[conversation]
        conversation.close()

    def _drop(self) -> None:
        """End those that are late, and the oldest where there are too many.

        Between two waits: an event that waits for its turn must not meet a closed conversation.
        """
        now, too_many = now_ns(), len(self._talking) - MOST_CONVERSATIONS
        for place, conversation in enumerate(list(self._talking)):
            if place < too_many or conversation.ends_ns <= now:
                self._end(conversation)
