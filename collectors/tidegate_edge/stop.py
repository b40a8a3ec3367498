"""SIGTERM and SIGINT as the end of a pause."""

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Final

Stopped = Callable[[float], bool]
"""Waits so many seconds, or less once the collector is to end; says whether it is to end."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def never_stopped(_seconds: float) -> bool:
    """For what ends by itself, and never pauses."""
    return False


def stopped_by_signals() -> Stopped:
    """From now on SIGTERM and SIGINT end no more than a pause, also the next one.

    The handler takes no lock, for the pause that it interrupts might hold it, as that of a `threading.Event`
    does. It sets a flag; a byte that Python writes to a pipe for each signal ends the wait, also for a signal
    that comes between the look at the flag and the wait.
    """
    came: list[int] = []
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda number, _frame: came.append(number))

    def stopped(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not came and select.select([read], [], [], max(until - time.monotonic(), 0.0))[0]:
            # A byte alone is no signal of ours: the child that enters a namespace is ended by one of its own,
            # and it shares the pipe.
            os.read(read, select.PIPE_BUF)
        return bool(came)

    return stopped
