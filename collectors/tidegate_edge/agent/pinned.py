"""Where daemons pinned BPF's objects, on the disk: for commands without a daemon, and for the next daemon.

`bpf.json` of the state directory: `{"pins": ["/sys/fs/bpf/tidegate"]}`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.steer.bpf import BpfBackend
from tidegate_edge.steer.bpf.backend import PINS
from tidegate_edge.steer.durable import cannot_write, write_whole

FILE: Final = "bpf.json"
READABLE: Final = 0o644


def holding(state: Path) -> list[Path]:
    """The directories in which objects of the agent's are pinned; where none was noted, the usual one is looked at.

    Raises:
        Failure: the note is damaged, or this process may not look.
    """
    return [each for each in noted(state) or (PINS,) if holds(each)]


def holds(pins: Path) -> bool:
    """Whether anything is pinned in a directory. Nothing else is asked: BPF is taken away as a whole.

    Raises:
        Failure: this process may not look.
    """
    try:
        return any(pins.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Failure(
            f"whether BPF steers this host cannot be told: {pins}: {error.strerror}",
            help="run it as root",
            exit_code=MISSING_PART,
        ) from error


def unpin(pins: Path) -> None:
    """Take away what is pinned in a directory, and what it does.

    Raises:
        Failure: the kernel refuses.
    """
    BpfBackend(pins=pins).remove()


def noted(state: Path) -> tuple[Path, ...]:
    """The directories that were noted.

    Raises:
        Failure: the note is damaged, or can't be read.
    """
    path = state / FILE
    try:
        return _pins_of(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (ValueError, TypeError) as error:
        raise Failure(
            f"{path}: not what the agent wrote there: {error}",
            help=f"remove {path}, and `tidegate-agent flush --pins DIRECTORY` what the daemon was told to use",
            exit_code=MISSING_PART,
        ) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", exit_code=MISSING_PART) from error


def _pins_of(text: str) -> tuple[Path, ...]:
    match json.loads(text):
        case {"pins": [*pins]}:
            return tuple(map(Path, pins))
    raise ValueError("no list of pins")


def note(directories: Iterable[Path], state: Path) -> None:
    """Note in which directories something may be pinned; in none: remove the note.

    Raises:
        Failure: the state directory can't be written; what was noted stays.
    """
    path = state / FILE
    listed = [str(each) for each in dict.fromkeys(directories)]
    if listed:
        write_whole(path, json.dumps({"pins": listed}).encode(), READABLE)
        return
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:  # no state directory
        return
    except OSError as error:
        raise cannot_write(path, error) from error
