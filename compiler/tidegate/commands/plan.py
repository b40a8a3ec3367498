"""`tidegate plan`."""

import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import click

from tidegate import show, state
from tidegate.apply import guard_input, refuse_unknown_variables
from tidegate.commands.options import AS_OF, JSON, LIMITS
from tidegate.commands.policies import read_policy
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import console, print_json, status, warning
from tidegate.difference import difference
from tidegate.errors import ANSWER_IS_NO
from tidegate.guard import judge
from tidegate.plan import save
from tidegate.plan_telemetry import warnings
from tidegate.run import make_plan
from tidegate.show.changes import SHOWN
from tidegate.show.differences import plan_difference
from tidegate.show.plans import plan_by_pop
from tidegate.times import now


@click.command(
    "plan",
    epilog="Exit codes: 0 the guard allows the plan, 1 it denies it (saved all the same), the policy has errors, or"
    " the inventory's variables are not of the applied plan, 2 wrong usage or input that cannot be read, 3 the"
    " guard or the store gave no answer.",
)
@click.argument("policy", type=click.Path(path_type=Path))
@AS_OF
@click.option(
    "--grace",
    type=click.IntRange(0, 86400),
    default=30,
    show_default=True,
    help="Seconds that samples may arrive late; a window closes only after them.",
)
@click.option(
    "--max-lag",
    type=click.IntRange(0, 86400),
    default=900,
    show_default=True,
    help="Seconds that a POP's telemetry may stand behind the fleet's; beyond them it keeps what it has.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Save the plan here.  [default: in the state directory]"
)
@click.option("--diff", "as_diff", is_flag=True, help="Show only what changes against the applied plan.")
@click.option("--all", "show_all", is_flag=True, help="Show everyone who enters or leaves, however many.")
@LIMITS
@JSON
@pass_settings
def command(
    settings: Settings,
    policy: Path,
    as_of: datetime | None,
    grace: int,
    max_lag: int,
    out: Path | None,
    as_diff: bool,
    show_all: bool,
    limits: Path | None,
    as_json: bool,
) -> None:
    """Select, decide, ask the guard, save the plan and show it. Nothing is applied.

    \b
    tidegate plan dsl/examples/edge.tide --diff
    """
    checked = read_policy(policy, limits)
    moment = now()
    with state.locked(settings.state), opened(settings) as client, status("planning") as progress:
        applied = state.applied(settings.state)
        refuse_unknown_variables(Path(checked.inventory), applied, None)
        if out:
            state.refuse_to_replace(out, settings.state)
        made = make_plan(
            client,
            checked,
            applied,
            as_of=as_of or moment,
            grace=timedelta(seconds=grace),
            max_lag=timedelta(seconds=max_lag),
            created_at=moment,
            progress=progress,
        )
        found = judge(guard_input(made, checked), opa=settings.opa)
        path = out or state.saved_path(settings.state, made)
        save(made, path)
        state.forget_old_plans(settings.state, path)
    for text in warnings(made.pops):
        warning(text)
    if as_json:
        print_json({"plan": made.document, "guard": asdict(found), "path": str(path)})
    else:
        shown = None if show_all else SHOWN
        if as_diff:
            plan_difference(console(), made, difference(applied, made), limit=shown)
        else:
            plan_by_pop(console(), made, limit=shown)
        show.verdict(console(), found)
        click.echo(f"Saved as {path}")
    sys.exit(0 if found.allow else ANSWER_IS_NO)
