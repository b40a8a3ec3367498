"""The commands of `tidegate-agent`: each asks the daemon, and does alone what can be done without one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tidegate_edge.errors import ANSWER_IS_NO, Failure
from tidegate_edge.option_types import duration_ns
from tidegate_edge.steer.backend import AUTO, CHOICES
from tidegate_edge.steer.report import change_lines, status_lines
from tidegate_edge.steer.steering import read_steering

from . import documents
from .ask import ask, need, no_daemon
from .direct import Done, apply_directly, flush_directly, status_directly
from .printing import show, tell
from .protocol import Answer, Document

STEERING: Final = Path("/etc/tidegate/steering.json")
STATE: Final = Path("/var/lib/tidegate")
SOCKET: Final = Path("/run/tidegate/agent.sock")
PINS: Final = Path("/sys/fs/bpf/tidegate")
SOCKET_NAME: Final = "agent.sock"

Command = TypeVar("Command", bound=Callable[..., Any])
Lines = Callable[[Document], list[str]]


def main() -> None:
    """Run the command line; a failure becomes its message on standard error and its exit code."""
    try:
        commands()
    except Failure as failure:
        tell(failure)
        sys.exit(failure.exit_code)


def _path_option(name: str, default: Path | None, text: str) -> Callable[[Command], Command]:
    shown = default is not None
    return click.option(name, type=click.Path(path_type=Path), default=default, show_default=shown, help=text)


steering_option = _path_option("--steering", STEERING, "The claims.")
state_option = _path_option(
    "--state-dir", STATE, "Where the lock, generations and the host's own default are."
)
socket_option = _path_option(
    "--socket", None, f"Of the daemon. [default: {SOCKET}, or {SOCKET_NAME} in a --state-dir that is given]"
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(epilog="Example: tidegate-agent apply --dry-run")
def commands() -> None:
    """Make the kernel match steering.json, and keep it so."""


@commands.command(epilog="Example: tidegate-agent check /etc/tidegate/steering.json")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, as_json: bool) -> None:
    """Check a steering file against its contract; neither the kernel nor the daemon is asked."""
    steering = read_steering(file)
    show(
        {"generation": steering.generation, "claims": len(steering.claims)},
        [f"{file}: generation {steering.generation}, {len(steering.claims)} claims"],
        as_json=as_json,
    )


@commands.command(epilog="Example: tidegate-agent run --backend auto --on-stop keep")
@steering_option
@state_option
@socket_option
@click.option("--group", help="Members of it may ask for status and why. [default: the process's own]")
@click.option(
    "--backend", type=click.Choice(CHOICES), default=AUTO, show_default=True,
    help="How to steer; auto: bpf where the host allows it.",
)  # fmt: skip
@_path_option("--cgroup", None, "Where BPF is attached. [default: the root of the cgroup2 hierarchy]")
@_path_option("--pins", PINS, "Where BPF's objects are pinned.")
@click.option("--per-request", is_flag=True, help="BPF counts anew for each request of a connection.")
@click.option(
    "--on-stop", type=click.Choice(["keep", "remove"]), default="keep", show_default=True,
    help="What becomes of the settings when the daemon is stopped; keep: a restart makes no gap.",
)  # fmt: skip
@click.option(
    "--when-starved", type=click.Choice(["cubic", "reno", "nothing"]), default="cubic", show_default=True,
    help="Takes BBR's place for new connections while this host is short of CPU.",
)  # fmt: skip
@click.option(
    "--starved-every", callback=duration_ns, default="5s", show_default=True,
    help="From one look at the host's health to the next.",
)  # fmt: skip
def run(state_dir: Path, socket: Path | None, **given: Any) -> None:  # noqa: ANN401 — click's own keywords
    """Run the daemon that keeps the kernel at the generation applied last."""
    from .run import Settings, run_daemon  # noqa: PLC0415 — numpy and pyroute2 take 0.3 s, which others need not wait for

    run_daemon(Settings(state=state_dir, socket=_socket(socket, state_dir), **given))


@commands.command(epilog="Example: tidegate-agent apply --confirm-within 10m")
@steering_option
@state_option
@socket_option
@click.option(
    "--confirm-within", callback=lambda c, o, v: v and duration_ns(c, o, v), metavar="DURATION",
    help="Go back by itself unless `confirm` comes within `10m`, say.",
)  # fmt: skip
@dry_run_option
@json_option
def apply(
    steering: Path,
    state_dir: Path,
    socket: Path | None,
    confirm_within: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the kernel match; exits 1 where it refused a route."""
    place = _socket(socket, state_dir)
    arguments = {"dry_run": dry_run, "confirm_within_ns": confirm_within}
    answer = ask(place, "apply", arguments, steering)
    if answer:
        _print(answer, _change_lines(dry_run), as_json=as_json)
    elif confirm_within:
        raise no_daemon(place, "apply --confirm-within")
    else:
        _report(apply_directly(steering, state_dir, dry_run=dry_run), dry_run=dry_run, as_json=as_json)


@commands.command(epilog="Example: tidegate-agent confirm")
@state_option
@socket_option
@json_option
def confirm(state_dir: Path, socket: Path | None, as_json: bool) -> None:
    """Keep the generation that waits to be confirmed; exits 1 where none does."""
    answer = need(_socket(socket, state_dir), "confirm")
    _print(answer, lambda document: [f"generation {document['generation']} stays"], as_json=as_json)


@commands.command(epilog="Example: tidegate-agent rollback --dry-run")
@state_option
@socket_option
@dry_run_option
@json_option
def rollback(state_dir: Path, socket: Path | None, dry_run: bool, as_json: bool) -> None:
    """Go back to the generation confirmed before; exits 1 where there is none."""
    answer = need(_socket(socket, state_dir), "rollback", {"dry_run": dry_run})
    _print(answer, _change_lines(dry_run), as_json=as_json)


@commands.command(epilog="Example: tidegate-agent flush --dry-run")
@state_option
@socket_option
@_path_option(
    "--pins", None, "Without a daemon: where BPF's objects are. [default: wherever daemons pinned some]"
)
@dry_run_option
@json_option
def flush(state_dir: Path, socket: Path | None, pins: Path | None, dry_run: bool, as_json: bool) -> None:
    """Remove all that the agent set, and put the host's own default back."""
    answer = ask(_socket(socket, state_dir), "flush", {"dry_run": dry_run})
    if answer:
        _print(answer, _change_lines(dry_run), as_json=as_json)
    else:
        _report(flush_directly(state_dir, pins, dry_run=dry_run), dry_run=dry_run, as_json=as_json)


@commands.command(epilog="Example: tidegate-agent status --json")
@steering_option
@state_option
@socket_option
@json_option
def status(steering: Path, state_dir: Path, socket: Path | None, as_json: bool) -> None:
    """Read the kernel back; exits 1 where it does not match, 0 where nothing is applied and nothing is to be."""
    answer = ask(_socket(socket, state_dir), "status")
    if answer:
        _print(answer, documents.status_lines, as_json=as_json)
        return
    done = status_directly(steering, state_dir)
    show(done.document, status_lines(done.document), as_json=as_json)
    if done.document["matches"] is False:
        sys.exit(ANSWER_IS_NO)
    if done.trouble:
        raise done.trouble


@commands.command(epilog="Example: tidegate-agent why 198.51.100.7")
@click.argument("peer")
@state_option
@socket_option
@json_option
def why(peer: str, state_dir: Path, socket: Path | None, as_json: bool) -> None:
    """Tell which claim applies to an address, and what each of its connections really has."""
    from .why import why_lines  # noqa: PLC0415 — as in `run`

    _print(need(_socket(socket, state_dir), "why", {"peer": peer}), why_lines, as_json=as_json)


def _socket(given: Path | None, state: Path) -> Path:
    return given or (SOCKET if state == STATE else state / SOCKET_NAME)


def _change_lines(dry_run: bool) -> Lines:
    return lambda document: change_lines(document, dry_run=dry_run)


def _print(answer: Answer, lines: Lines, *, as_json: bool) -> None:
    """What the daemon said, and its exit code."""
    if answer.document is not None:
        show(answer.document, lines(answer.document), as_json=as_json)
    if answer.message is not None:
        raise Failure(answer.message, help=answer.help, exit_code=answer.exit_code)
    if answer.exit_code:
        sys.exit(answer.exit_code)


def _report(done: Done, *, dry_run: bool, as_json: bool) -> None:
    show(done.document, change_lines(done.document, dry_run=dry_run), as_json=as_json)
    if done.trouble:
        raise done.trouble
    if done.document["failed"]:
        sys.exit(ANSWER_IS_NO)
