"""`tidegate-agent`: makes this host's kernel match steering.json. Only wires; the steps are in `steer`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from .errors import ANSWER_IS_NO, Failure
from .steer.algorithms import read_default, require_algorithms, require_default_allowed
from .steer.claims import NOTHING_WANTED, Wanted, want
from .steer.default import DefaultChange, decide_default, make_default, read_memory
from .steer.kernel import change_routes, interface_names, read_routes, read_rule_tables, require_net_admin
from .steer.report import Document, change_document, change_lines, status_document, status_lines
from .steer.routes import Plan, own_routes, plan_routes
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
    claims = read_steering(steering)
    require_algorithms(claims.algorithms)
    if claims.default_congestion_control:
        require_default_allowed(claims.default_congestion_control)
    _change(claims.generation, want(claims), claims.default_congestion_control, state_dir, dry_run, as_json)


@commands.command(epilog="Example: tidegate-agent flush --dry-run")
@state_option
@dry_run_option
@json_option
def flush(state_dir: Path, dry_run: bool, as_json: bool) -> None:
    """Remove all that the agent set, and put the host's own default back."""
    _change(None, NOTHING_WANTED, None, state_dir, dry_run, as_json)


@commands.command(epilog="Example: tidegate-agent status --json")
@steering_option
@state_option
@json_option
def status(steering: Path, state_dir: Path, as_json: bool) -> None:
    """Read the kernel back; exits 1 where it does not match."""
    claims = read_steering(steering)
    wanted = want(claims)
    with turn_to_read(state_dir):
        plan, default = _decide(wanted, claims.default_congestion_control, state_dir)
    document = status_document(claims.generation, plan, wanted, default, interface_names())
    _print(document, status_lines(document), as_json=as_json)
    if not document["matches"]:
        sys.exit(ANSWER_IS_NO)


def _change(
    generation: str | None, wanted: Wanted, default: str | None, state_dir: Path, dry_run: bool, as_json: bool
) -> None:
    if not dry_run:
        require_net_admin()
    with turn_to_read(state_dir) if dry_run else turn_to_write(state_dir):
        plan, default_change = _decide(wanted, default, state_dir)
        if dry_run:
            after, rejected = plan.after, []
        else:
            make_default(default_change, state_dir)
            rejected = change_routes(plan.changes)
            after = own_routes(read_routes()) if plan.changes else plan.before
    document = change_document(generation, plan, after, rejected, default_change, interface_names())
    _print(document, change_lines(document, dry_run=dry_run), as_json=as_json)
    if rejected:
        sys.exit(ANSWER_IS_NO)


def _decide(wanted: Wanted, default: str | None, state_dir: Path) -> tuple[Plan, DefaultChange]:
    plan = plan_routes(read_routes(), read_rule_tables(), wanted)
    return plan, decide_default(default, read_default(), read_memory(state_dir))


def _print(document: Document, lines: list[str], *, as_json: bool) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else "\n".join(lines))
