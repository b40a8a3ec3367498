"""The few system calls of the laboratory that Python 3.11 does not offer."""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_CLONE_NEWNET: Final = 0x40000000  # linux/sched.h
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_PR_SET_TIMERSLACK: Final = 29  # linux/prctl.h

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _called(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


@contextmanager
def inside_namespace(name: str) -> Iterator[None]:
    """This thread is in the named network namespace for the length of the block.

    Raises:
        OSError: there is no such namespace, or no right to enter it.
    """
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        there = os.open(Path("/run/netns") / name, os.O_RDONLY)
        try:
            _called(_libc.setns(there, _CLONE_NEWNET), name)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _called(_libc.setns(home, _CLONE_NEWNET), "the namespace this came from")
    finally:
        os.close(home)


def die_with_parent(parent: int) -> None:
    """Have the kernel terminate this process when its parent `parent` ends.

    Raises:
        SystemExit: the parent ended before.
    """
    _called(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0), "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        raise SystemExit(0)


def wake_exactly() -> None:
    """Timers of this thread may not be put off: the kernel's default is up to 50 us (prctl(2), PR_SET_TIMERSLACK)."""
    _called(_libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0), "PR_SET_TIMERSLACK")
