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
from tidegate.commands.terminal import console, print_json, status
from tidegate.errors import ANSWER_IS_NO
from tidegate.guard import judge
from tidegate.plan import save
from tidegate.run import make_plan
from tidegate.times import now


@click.command("plan")
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
    "--out", type=click.Path(path_type=Path), help="Save the plan here.  [default: in the state directory]"
)
@LIMITS
@JSON
@pass_settings
def command(
    settings: Settings,
    policy: Path,
    as_of: datetime | None,
    grace: int,
    out: Path | None,
    limits: Path | None,
    as_json: bool,
) -> None:
    """Select, decide, ask the guard, save the plan and show it. Nothing is applied.

    \b
    tidegate plan dsl/examples/edge.tide
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
            created_at=moment,
            progress=progress,
        )
        found = judge(guard_input(made, checked), opa=settings.opa)
        path = out or state.saved_path(settings.state, made)
        save(made, path)
        state.forget_old_plans(settings.state, path)
    if as_json:
        print_json({"plan": made.document, "guard": asdict(found), "path": str(path)})
    else:
        show.plan_by_pop(console(), made)
        show.verdict(console(), found)
        click.echo(f"Saved as {path}")
    sys.exit(0 if found.allow else ANSWER_IS_NO)
