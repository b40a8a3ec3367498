"""`tidegate windows`: what is closed, what came late, and the deliberate way to use it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from tidegate import state
from tidegate.commands.options import JSON, Moment
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import print_json
from tidegate.times import format_time

if TYPE_CHECKING:
    from tidegate.late import ClosedWindow


@click.group("windows")
def command() -> None:
    """Show which windows are closed and what came late; reopen some.

    \b
    tidegate windows show --pop fra2 --from 2026-11-20T00:00:00Z --until 2026-11-20T06:00:00Z --late
    """


_FROM = click.option("--from", "first", type=Moment(), required=True, help="Windows that start at or after.")
_UNTIL = click.option("--until", type=Moment(), required=True, help="Windows that start before.")


@command.command("show", epilog="Exit codes: 0 shown, 2 wrong usage, 3 the store gave no answer.")
@click.option("--pop", help="Of one POP only.")
@_FROM
@_UNTIL
@click.option("--late", "only_late", is_flag=True, help="Only those that samples came late for.")
@JSON
@pass_settings
def show(
    settings: Settings, pop: str | None, first: datetime, until: datetime, *, only_late: bool, as_json: bool
) -> None:
    """Print closed windows by POP and view: samples when each was closed, and how many came since.

    \b
    tidegate windows show --pop fra2 --from 2026-11-20T00:00:00Z --until 2026-11-20T06:00:00Z --late
    """
    from tidegate.late import closed_of, late_only  # noqa: PLC0415 - a policy author has no store installed

    _in_order(first, until)
    with opened(settings) as client:
        found = closed_of(client, pop, first, until)
    _print(late_only(found) if only_late else found, as_json=as_json)


@command.command(
    "reopen", epilog="Exit codes: 0 reopened, 2 wrong usage or none to reopen, 3 the store gave no answer."
)
@click.option("--pop", required=True, help="Whose windows.")
@_FROM
@_UNTIL
@JSON
@pass_settings
def reopen(settings: Settings, pop: str, first: datetime, until: datetime, *, as_json: bool) -> None:
    """Have the next plan close a POP's windows again, with what came late; prints those.

    Refused where samples that a window was made of are not in the store any more.

    \b
    tidegate windows reopen --pop fra2 --from 2026-11-20T05:00:00Z --until 2026-11-20T05:30:00Z
    """
    from tidegate.late import reopen as reopen_windows  # noqa: PLC0415

    _in_order(first, until)
    with state.locked(settings.state), opened(settings) as client:
        found = reopen_windows(client, pop, first, until)
    _print(found, as_json=as_json)


def _in_order(first: datetime, until: datetime) -> None:
    if first >= until:
        raise click.UsageError("--from must be before --until")


def _print(windows: Sequence["ClosedWindow"], *, as_json: bool) -> None:
    if as_json:
        print_json([_document(window) for window in windows])
        return
    for window in windows:
        late = f", {window.late} late" if window.late else ""
        lost = f", {window.forgotten} not in the store any more" if window.forgotten else ""
        click.echo(
            f"{window.pop} {format_time(window.start)} {window.step_s}s {window.view}:"
            f" {window.rows} samples{late}{lost}"
        )


def _document(window: "ClosedWindow") -> dict[str, object]:
    return {
        "pop": window.pop,
        "view": window.view,
        "window_start": format_time(window.start),
        "step_s": window.step_s,
        "closed_at": format_time(window.closed_at),
        "samples": window.rows,
        "late": window.late,
        "forgotten": window.forgotten,
    }
