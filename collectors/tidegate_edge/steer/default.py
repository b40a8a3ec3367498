"""The default algorithm of the host: set for as long as steering.json wants one, then put back.

The value found before is remembered in `default.json` of the state directory:
`{"before": "cubic", "set": "bbr"}`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .algorithms import write_default
from .durable import cannot_write, write_whole

FILE: Final = "default.json"
READABLE: Final = 0o644  # `status` needs no privilege


@dataclass(frozen=True, slots=True)
class Memory:
    """What the agent put in the default's place, and what it found there."""

    before: str
    set: str


@dataclass(frozen=True, slots=True)
class DefaultChange:
    """From the default found to the one to be; `wanted` None leaves the host its own.

    `memory` is to be kept from then on, None: nothing to put back later.
    """

    wanted: str | None
    before: str
    after: str
    memory: Memory | None


def decide_default(wanted: str | None, found: str, memory: Memory | None) -> DefaultChange:
    """What to set and what to remember.

    A default that differs from what the agent set was set by someone else since (or by a boot): theirs is then the
    host's own.
    """
    ours = memory is not None and memory.set == found
    own = memory.before if memory and ours else found
    if wanted is None:
        return DefaultChange(None, found, own, None)
    if wanted == own:
        return DefaultChange(wanted, found, own, None)
    return DefaultChange(wanted, found, wanted, Memory(own, wanted))


def read_memory(directory: Path) -> Memory | None:
    """What was remembered, None if nothing.

    Raises:
        Failure: the file is damaged.
    """
    path = directory / FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Memory(str(document["before"]), str(document["set"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path}: not what the agent wrote there: {error}",
            help=f"set net.ipv4.tcp_congestion_control as it should be without Tidegate, and remove {path}",
            exit_code=MISSING_PART,
        ) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", exit_code=MISSING_PART) from error


def make_default(change: DefaultChange, directory: Path) -> None:
    """Set the default and keep the memory; the memory first, so that a crash between loses nothing.

    Raises:
        Failure: the kernel refuses, or the state directory cannot be written.
    """
    known = read_memory(directory)
    if change.after != change.before:
        if change.memory:
            _keep(change.memory, directory)
        try:
            write_default(change.after)
        except Failure:
            _keep(known, directory)
            raise
    if change.memory != known:
        _keep(change.memory, directory)


def _keep(memory: Memory | None, directory: Path) -> None:
    path = directory / FILE
    if memory is not None:
        document = json.dumps({"before": memory.before, "set": memory.set}, sort_keys=True)
        write_whole(path, document.encode(), READABLE)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
