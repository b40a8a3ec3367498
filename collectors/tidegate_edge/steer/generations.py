"""Generations on disk: what was applied, which one is on probation, and which comes back.

In the state directory, `generations/NUMBER.json` is a steering file as it was applied, and `generations.json` says
which of them count: `{"confirmed": [3, null, 5], "pending": {"number": 6, "boot": ..., "deadline_ns": ...}}`,
null stands for a flush. That file is replaced in one step, so every crash leaves one state or the other.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate_edge.errors import ANSWER_IS_NO, MISSING_PART, Failure

from .boottime import Moment
from .durable import Staged, cannot_write, stage, write_whole
from .steering import Steering, steering_of

KEPT: Final = 10
FOLDER: Final = "generations"
FILE: Final = "generations.json"
READABLE: Final = 0o644  # `status` needs no privilege

Number = int | None
"""Of a generation in this state directory; None: a flush, nothing is wanted."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A generation on probation.

    Attributes:
        number: of the generation.
        deadline: when the one before comes back, unless it is confirmed.
    """

    number: int
    deadline: Moment


@dataclass(frozen=True, slots=True)
class Ledger:
    """Which generations count.

    Attributes:
        confirmed: the oldest first, at most ten; empty: nothing was ever applied.
        pending: on probation, before the last of `confirmed`.
    """

    confirmed: tuple[Number, ...] = ()
    pending: Pending | None = None

    @property
    def begun(self) -> bool:
        """Whether anything was ever applied: if not, the kernel is nobody's to change."""
        return bool(self.confirmed) or self.pending is not None

    @property
    def current(self) -> Number:
        """The generation that the kernel is to hold."""
        if self.pending:
            return self.pending.number
        return self.confirmed[-1] if self.confirmed else None

    @property
    def numbers(self) -> frozenset[int]:
        """Every generation that can still come back."""
        pending = (self.pending.number,) if self.pending else ()
        return frozenset(number for number in (*self.confirmed, *pending) if number is not None)


def confirmed(ledger: Ledger, number: Number) -> Ledger:
    """The ledger after a generation was applied for good; what is applied again stays one step to go back over."""
    if ledger.confirmed[-1:] == (number,):
        return Ledger(ledger.confirmed, None)
    return Ledger((*ledger.confirmed, number)[-KEPT:], None)


def on_probation(ledger: Ledger, number: int, deadline: Moment) -> Ledger:
    """The ledger after a generation was applied that must be confirmed; one on probation before it is forgotten."""
    return replace(ledger, pending=Pending(number, deadline))


def confirm(ledger: Ledger) -> Ledger:
    """The generation on probation counts from now on.

    Raises:
        Failure: none is on probation.
    """
    if ledger.pending is None:
        raise Failure(
            "no generation waits to be confirmed",
            help="it was confirmed already, or its time passed and the one before came back: see `status`",
            exit_code=ANSWER_IS_NO,
        )
    return confirmed(ledger, ledger.pending.number)


def rolled_back(ledger: Ledger) -> Ledger:
    """The generation before: the last confirmed one where one is on probation, else the one before that.

    Raises:
        Failure: there is none.
    """
    if ledger.pending is not None:
        return Ledger(ledger.confirmed, None)
    if len(ledger.confirmed) < 2:
        raise Failure(
            "there is no earlier generation to go back to",
            help="`tidegate-agent flush` takes the kernel back to the host's own settings",
            exit_code=ANSWER_IS_NO,
        )
    return Ledger(ledger.confirmed[:-1], None)


def read_ledger(directory: Path) -> Ledger:
    """The ledger of a state directory, an empty one where there is none.

    Raises:
        Failure: it is damaged, or can't be read.
    """
    path = directory / FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        pending = document["pending"]
        return Ledger(
            tuple(None if number is None else int(number) for number in document["confirmed"]),
            pending
            and Pending(int(pending["number"]), Moment(str(pending["boot"]), int(pending["deadline_ns"]))),
        )
    except (FileNotFoundError, NotADirectoryError):
        return Ledger()
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path}: not what the agent wrote there: {error}",
            help=f"remove {path} and run `tidegate-agent apply`; the kernel keeps what it holds meanwhile",
            exit_code=MISSING_PART,
        ) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", exit_code=MISSING_PART) from error


def stage_ledger(ledger: Ledger, directory: Path) -> Staged:
    """Write the next ledger aside; its `commit` makes it the one that counts.

    Raises:
        Failure: the state directory can't be written; the ledger is as it was.
    """
    pending = ledger.pending and {
        "number": ledger.pending.number,
        "boot": ledger.pending.deadline.boot,
        "deadline_ns": ledger.pending.deadline.since_ns,
    }
    document = {"confirmed": list(ledger.confirmed), "pending": pending}
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from error
    return stage(directory / FILE, json.dumps(document, sort_keys=True).encode(), READABLE)


def drop_others(ledger: Ledger, directory: Path) -> None:
    """Remove stored generations that the ledger does not name; one file too many is no reason to fail."""
    for number in set(_stored(directory)) - ledger.numbers:
        with suppress(OSError):
            _path(directory, number).unlink()


def store(text: bytes, ledger: Ledger, directory: Path) -> int:
    """Keep a steering file as a generation, and number it; the ledger names it only if it is the current one.

    Raises:
        Failure: the state directory can't be written; nothing is left there.
    """
    folder = directory / FOLDER
    if ledger.current is not None:
        with suppress(OSError):
            if _path(directory, ledger.current).read_bytes() == text:
                return ledger.current
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    number = max(_stored(directory), default=0) + 1
    write_whole(_path(directory, number), text, READABLE)
    return number


def recall(number: int, directory: Path) -> Steering:
    """A generation that was stored.

    Raises:
        Failure: it is gone or damaged.
    """
    path = _path(directory, number)
    try:
        return steering_of(path.read_bytes(), path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", exit_code=MISSING_PART) from error


def _path(directory: Path, number: int) -> Path:
    return directory / FOLDER / f"{number}.json"


def _stored(directory: Path) -> list[int]:
    with suppress(OSError):
        return [int(path.stem) for path in (directory / FOLDER).glob("[0-9]*.json") if path.stem.isdecimal()]
    return []
