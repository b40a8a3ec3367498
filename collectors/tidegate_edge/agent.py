"""`tidegate-agent`: makes this host's kernel match steering.json. Only wires; the steps are in `steer`."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from .errors import ANSWER_IS_NO, MISSING_PART, Failure
from .steer.algorithms import read_default, require_algorithms, require_default_allowed
from .steer.claims import NOTHING_WANTED, Wanted, want
from .steer.default import DefaultChange, decide_default, make_default, read_memory
from .steer.kernel import change_routes, interface_names, read_routes, read_rule_tables, require_net_admin
from .steer.report import Document, change_document, change_lines, status_document, status_lines
from .steer.routes import own_routes, plan_routes
from .steer.steering import read_steering
from .steer.turn import turn_to_read, turn_to_write

STEERING: Final = Path("/etc/tidegate/steering.json")
STATE: Final = Path("/var/lib/tidegate")

Command = TypeVar("Command", bound=Callable[..., Any])


def main() -> None:
    """Run the command line; a failure becomes its message on standard error and its exit code."""
    try:
        commands()
    except Failure as failure:
        click.echo(f"tidegate-agent: {failure.message}", err=True)
        if failure.help:
            click.echo(f"help: {failure.help}", err=True)
        sys.exit(failure.exit_code)


def _path_option(name: str, default: Path, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=click.Path(path_type=Path), default=default, show_default=True, help=text)


steering_option = _path_option("--steering", STEERING, "The claims.")
state_option = _path_option("--state-dir", STATE, "Where the lock and the host's own default are kept.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(epilog="Example: tidegate-agent apply --dry-run")
def commands() -> None:
    """Make the kernel match steering.json, by routes that carry TCP settings."""


@commands.command(epilog="Example: tidegate-agent check /etc/tidegate/steering.json")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, as_json: bool) -> None:
    """Check a steering file against its contract; the kernel is not asked."""
    steering = read_steering(file)
    document = {"generation": steering.generation, "claims": len(steering.claims)}
    _print(
        document,
        [f"{file}: generation {steering.generation}, {len(steering.claims)} claims"],
        as_json=as_json,
    )


@commands.command(epilog="Example: tidegate-agent apply --steering steering.json --dry-run --json")
@steering_option
@state_option
@dry_run_option
@json_option
def apply(steering: Path, state_dir: Path, dry_run: bool, as_json: bool) -> None:
    """Make the kernel match; exits 1 where it refused a route."""
    if not dry_run:
        require_net_admin()
    with turn_to_read(state_dir) if dry_run else turn_to_write(state_dir):
        # Read inside the turn: a run that waited must not bring back an older generation.
        claims = read_steering(steering)
        require_algorithms(claims.algorithms)
        if claims.default_congestion_control:
            require_default_allowed(claims.default_congestion_control)
        done = _change(claims.generation, want(claims), claims.default_congestion_control, state_dir, dry_run)
    _report(done, dry_run=dry_run, as_json=as_json)


@commands.command(epilog="Example: tidegate-agent flush --dry-run")
@state_option
@dry_run_option
@json_option
def flush(state_dir: Path, dry_run: bool, as_json: bool) -> None:
    """Remove all that the agent set, and put the host's own default back."""
    if not dry_run:
        require_net_admin()
    with turn_to_read(state_dir) if dry_run else _turn_if_there_is_one(state_dir):
        done = _change(None, NOTHING_WANTED, None, state_dir, dry_run)
    _report(done, dry_run=dry_run, as_json=as_json)


@commands.command(epilog="Example: tidegate-agent status --json")
@steering_option
@state_option
@json_option
def status(steering: Path, state_dir: Path, as_json: bool) -> None:
    """Read the kernel back; exits 1 where it does not match."""
    with turn_to_read(state_dir):
        claims = read_steering(steering)
        wanted = want(claims)
        plan = plan_routes(read_routes(), read_rule_tables(), wanted)
        default = decide_default(claims.default_congestion_control, read_default(), read_memory(state_dir))
    document = status_document(claims.generation, plan, wanted, default, interface_names())
    _print(document, status_lines(document), as_json=as_json)
    if not document["matches"]:
        sys.exit(ANSWER_IS_NO)


@dataclass(frozen=True, slots=True)
class _Done:
    """What a run did, and why the default could not follow, if so."""

    document: Document
    trouble: Failure | None


def _change(
    generation: str | None, wanted: Wanted, default: str | None, state_dir: Path, dry_run: bool
) -> _Done:
    """The routes first: whatever ails the default or its memory, no connection runs on under claims of the past."""
    plan = plan_routes(read_routes(), read_rule_tables(), wanted)
    if dry_run:
        after, rejected = plan.after, []
    else:
        rejected = change_routes(plan.changes)
        after = own_routes(read_routes()) if plan.changes else plan.before
    default_change, trouble = _change_default(default, state_dir, dry_run)
    return _Done(
        change_document(generation, plan, after, rejected, default_change, interface_names()), trouble
    )


def _change_default(
    wanted: str | None, state_dir: Path, dry_run: bool
) -> tuple[DefaultChange, Failure | None]:
    found = read_default()
    try:
        change = decide_default(wanted, found, read_memory(state_dir))
        if not dry_run:
            make_default(change, state_dir)
    except Failure as failure:
        return DefaultChange(wanted, found, read_default(), None), failure
    return change, None


@contextmanager
def _turn_if_there_is_one(state_dir: Path) -> Iterator[None]:
    """A turn to write; where it cannot be had, none: what removes everything must not be stopped by a file."""
    with ExitStack() as turn:
        try:
            turn.enter_context(turn_to_write(state_dir))
        except Failure as failure:
            click.echo(f"tidegate-agent: {failure.message}; going on without the lock", err=True)
        yield


def _report(done: _Done, *, dry_run: bool, as_json: bool) -> None:
    _print(done.document, change_lines(done.document, dry_run=dry_run), as_json=as_json)
    if done.trouble:
        raise done.trouble
    if done.document["failed"]:
        sys.exit(ANSWER_IS_NO)


def _print(document: Document, lines: list[str], *, as_json: bool) -> None:
    try:
        _write(json.dumps(document, indent=2) if as_json else "\n".join(lines))
    except OSError as error:
        sys.stdout = None  # else the interpreter tries once more when it ends, and exits 120
        raise Failure(
            f"the report could not be written: {error.strerror}",
            help="the kernel may have been changed all the same; see `tidegate-agent status`",
            exit_code=MISSING_PART,
        ) from error


def _write(text: str) -> None:
    if sys.stdout is None:  # click then says nothing, and succeeds
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    click.echo(text)
