"""`tidegate fleet`."""

from pathlib import Path

import click
from tidegate_dsl import read_fleet

from tidegate.commands.options import INVENTORY
from tidegate.commands.terminal import print_json
from tidegate.fleet import fleet_document


@click.command("fleet")
@INVENTORY
def command(inventory: Path) -> None:
    """Print POPs and own prefixes as fleet.json, which the collector classifies traffic by.

    \b
    tidegate fleet --inventory inventory > fleet.json
    """
    print_json(fleet_document(read_fleet(inventory)))
