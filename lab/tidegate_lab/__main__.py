"""`python -m tidegate_lab EXPERIMENT`: run an experiment, show its numbers, and say whether its claims hold."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import click

from tidegate_lab.experiments import loss as loss_experiment

_MISSING_PART = 3  # CONTRIBUTING.md, exit codes


@click.group()
def main() -> None:
    """The TCP laboratory.

    Exit code 0: every claim of the experiment holds; 1: one does not; 3: not root, or something is missing.

    Example: python -m tidegate_lab loss
    """
    if os.geteuid() != 0:
        click.echo(
            "error: the laboratory makes network namespaces and needs root\n  help: use sudo", err=True
        )
        sys.exit(_MISSING_PART)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def loss(as_json: bool) -> None:
    """Completion times of 3 MB objects under random loss, CUBIC and BBR.

    Example: python -m tidegate_lab loss --json
    """
    try:
        outcomes = loss_experiment.measure()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        reasons = "".join(f"\n  {note.strip()}" for note in getattr(error, "__notes__", []))
        click.echo(f"error: the laboratory cannot work here: {error}{reasons}", err=True)
        sys.exit(_MISSING_PART)
    claims = loss_experiment.claims(outcomes)
    if as_json:
        document = {"outcomes": [asdict(one) for one in outcomes], "claims": [asdict(one) for one in claims]}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo("loss   algorithm  transfers     p10  median     p90  seconds   measured loss  late")
        for one in outcomes:
            times, counters = one.times, one.counters
            click.echo(
                f"{one.loss:<6} {one.algorithm:<9} {times.transfers:>10} {times.p10_s:>7.2f} {times.median_s:>7.2f}"
                f" {times.p90_s:>7.2f} {counters.lost / counters.offered:>23.4f}  {counters.late_mean_us:.0f} us"
            )
        for claim in claims:
            click.echo(f"{'holds' if claim.holds else 'FAILS'}  {claim.text}")
    sys.exit(0 if all(claim.holds for claim in claims) else 1)


if __name__ == "__main__":
    main()
