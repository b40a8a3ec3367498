"""One run at a time: two that interleave would each undo the other's half."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate_edge.errors import MISSING_PART, Failure

FILE = "agent.lock"


@contextmanager
def turn_to_write(directory: Path) -> Iterator[None]:
    """Wait until no other run reads or writes, and keep it so; makes the state directory.

    Raises:
        Failure: the state directory cannot be made or written.
    """
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = (directory / FILE).open("ab")
    except OSError as error:
        raise Failure(
            f"{directory}: {error.strerror}",
            help="run it as root, or name another directory with --state-dir",
            exit_code=MISSING_PART,
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def turn_to_read(directory: Path) -> Iterator[None]:
    """Wait until no other run writes; leaves nothing behind, so where no run ever wrote there is no lock."""
    try:
        lock = (directory / FILE).open("rb")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
