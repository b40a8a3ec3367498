"""One run at a time: two that interleave would each undo the other's half."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

from tidegate_edge.errors import MISSING_PART, Failure

FILE: Final = "agent.lock"
PATIENCE_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.05
# Only those who may run the agent may hold others up.
LOCK_MODE: Final = 0o600


@contextmanager
def turn_to_write(directory: Path, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Wait until no other run reads or writes, and keep it so; makes the state directory.

    Raises:
        Failure: the state directory cannot be made or written, or another run went on for longer than the patience.
    """
    path = directory / FILE
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, LOCK_MODE)
    except OSError as error:
        raise Failure(
            f"{directory}: {error.strerror}",
            help="run it as root, or name another directory with --state-dir",
            exit_code=MISSING_PART,
        ) from error
    try:
        with suppress(
            OSError
        ):  # one that another user made, or on a read-only file system, locks all the same
            os.fchmod(lock, LOCK_MODE)
        _wait(lock, fcntl.LOCK_EX, path, patience_seconds)
        yield
    finally:
        os.close(lock)


@contextmanager
def turn_to_read(directory: Path, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Wait until no other run writes; leaves nothing behind.

    Where no run ever wrote there is no lock, and who may not open it reads without: at worst half a change.

    Raises:
        Failure: another run went on for longer than the patience.
    """
    path = directory / FILE
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        _wait(lock, fcntl.LOCK_SH, path, patience_seconds)
        yield
    finally:
        os.close(lock)


def _wait(lock: int, operation: int, path: Path, patience_seconds: float) -> None:
    if _taken(lock, operation):
        return
    click.echo("tidegate-agent: waiting for another run", err=True)
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        if _taken(lock, operation):
            return
    raise Failure(
        f"{path}: another run holds it for longer than {patience_seconds:g} s",
        help=f"`fuser {path}` names its process; nothing was changed",
        exit_code=MISSING_PART,
    )


def _taken(lock: int, operation: int) -> bool:
    try:
        fcntl.flock(lock, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
