"""`tidegate-collector check`: whether this host has what a collector needs, and the way out where not."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from .errors import ANSWER_IS_NO
from .preflight import MISSING, look

_PATH = click.Path(path_type=Path)


@click.command(epilog="Example: tidegate-collector check --fleet /etc/tidegate/fleet.json --json")
@click.option("--fleet", type=_PATH, help="fleet.json, if the collector is to classify traffic.")
@click.option("--spool", type=_PATH, help="Directory of the spool, if rows go to Kafka.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check(fleet: Path | None, spool: Path | None, as_json: bool) -> None:
    """Look at all that a collector needs of this host; run it as the collector's user.

    Each line is ok, degraded (it works with less) or missing. Exit code 1: something is missing.
    """
    findings = list(look(fleet, spool))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            click.echo(f"{finding.state:9} {finding.name:16} {finding.detail}")
            if finding.way_out:
                click.echo(f"{'':26} help: {finding.way_out}")
    if any(finding.state == MISSING for finding in findings):
        sys.exit(ANSWER_IS_NO)
