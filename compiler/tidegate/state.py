"""The state directory: the last applied plan, the saved plans, and one lock.

`applied.json` is written last of all, so after a crash `tidegate apply` of the same plan does the rest.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate.errors import MISSING_PART, Failure
from tidegate.files import remove
from tidegate.plan import Plan, load, save

PLANS_KEPT: Final = 300  # a day of runs every five minutes


def applied_path(state: Path) -> Path:
    """The last applied plan."""
    return state / "applied.json"


def saved_path(state: Path, plan: Plan) -> Path:
    """Where `tidegate plan` saves a plan: by what it decides and what it rests on."""
    return state / "plans" / f"{plan.watermark:%Y%m%dT%H%M%SZ}-{plan.generation}.json"


def forget_old_plans(state: Path, just_saved: Path) -> None:
    """Keep the newest saved plans; their names sort by watermark. The one just saved may be of an old one.

    Raises:
        Failure: one cannot be removed.
    """
    for path in sorted((state / "plans").glob("*.json"))[:-PLANS_KEPT]:
        if path != just_saved:
            remove(path)


def refuse_to_replace(path: Path, state: Path) -> None:
    """A plan is saved over a plan or nothing, and never as the applied one.

    Raises:
        Failure: `path` is the state's own, or holds something else than a plan.
    """
    if path.resolve() == applied_path(state).resolve():
        raise Failure(f"{path}: only `tidegate apply` writes it", help="name another file")
    if path.exists():
        try:
            load(path)
        except Failure as failure:
            raise Failure(f"{path}: holds something else than a plan", help="name another file") from failure


def applied(state: Path) -> Plan | None:
    """The last applied plan, or None for a fleet's first.

    Raises:
        Failure: it cannot be read, was edited, or is of a release with another contract.
    """
    path = applied_path(state)
    if not path.exists():
        return None
    try:
        return load(path)
    except Failure as failure:
        raise Failure(
            failure.message,
            help="where it is damaged or another release's, docs/upgrade.md says how to begin anew",
            exit_code=failure.exit_code,
        ) from failure


def record_applied(state: Path, plan: Plan) -> None:
    """Make a plan the last applied one."""
    save(plan, applied_path(state))


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the state directory for one command; a second one is refused, it does not wait.

    Raises:
        Failure: another command holds it, or the directory cannot be made.
    """
    try:
        state.mkdir(parents=True, exist_ok=True)
        file = (state / "lock").open("w")
    except OSError as error:
        raise Failure(f"{state}: cannot be used: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Failure(
                f"{state}: another tidegate command is at work here",
                help="wait for it, or give this one a `--state` of its own",
                exit_code=MISSING_PART,
            ) from error
        yield
