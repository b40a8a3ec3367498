"""`tidegate guard`."""

import sys
from dataclasses import asdict
from pathlib import Path

import click
from tidegate_dsl import read_fleet

from tidegate import emit, show
from tidegate.commands.options import INVENTORY, JSON
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.terminal import console, print_json
from tidegate.errors import ANSWER_IS_NO
from tidegate.fleet import fleet_document
from tidegate.guard import judge, vars_document


@click.command(
    "guard",
    epilog="Exit codes: 0 allowed, 1 denied, 2 wrong usage or input that cannot be read, 3 the guard gave no answer.",
)
@INVENTORY
@JSON
@pass_settings
def command(settings: Settings, inventory: Path, as_json: bool) -> None:
    """Ask the guard about the variables that stand in an inventory; the playbook's first task.

    \b
    tidegate guard --inventory inventory
    """
    fleet = read_fleet(inventory)
    directory = inventory.parent if inventory.is_file() else inventory
    found = judge(vars_document(emit.read_vars(directory), fleet_document(fleet)), opa=settings.opa)
    if as_json:
        print_json(asdict(found))
    else:
        show.verdict(console(), found)
    sys.exit(0 if found.allow else ANSWER_IS_NO)
