"""`tidegate apply`."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from tidegate import emit, show, state
from tidegate.apply import guard_input, refuse_stale, refuse_unknown_variables
from tidegate.commands.options import JSON, LIMITS
from tidegate.commands.policies import read_policy, short
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.terminal import console, print_json
from tidegate.errors import ANSWER_IS_NO
from tidegate.guard import judge
from tidegate.plan import load
from tidegate.times import now


@click.command(
    "apply",
    epilog="Exit codes: 0 applied, 1 refused (stale, edited or denied; nothing is written), 2 wrong usage or"
    " input that cannot be read, 3 the guard gave no answer.",
)
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@LIMITS
@JSON
@pass_settings
def command(settings: Settings, plan_file: Path, limits: Path | None, as_json: bool) -> None:
    """Write a saved plan's variables for the playbooks. A stale, edited or denied plan is refused.

    \b
    tidegate apply .tidegate/plans/20261120T060000Z-0123456789abcdef.json
    """
    with state.locked(settings.state):
        made = load(plan_file)
        checked = read_policy(Path(made.document["policy"]["path"]), limits)
        applied = state.applied(settings.state)
        refuse_stale(made, checked, applied, now())
        refuse_unknown_variables(Path(checked.inventory), applied, made)
        found = judge(guard_input(made, checked), opa=settings.opa)
        written = []
        if found.allow:
            written = emit.emit(made, short(Path(checked.inventory)))
            state.record_applied(settings.state, made)
    if as_json:
        files = [{"pop": w.pop, "path": str(w.path), "action": w.action} for w in written]
        print_json({"generation": made.generation, "guard": asdict(found), "files": files})
    else:
        show.verdict(console(), found)
        show.files(console(), written)
    sys.exit(0 if found.allow else ANSWER_IS_NO)
