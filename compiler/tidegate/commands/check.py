"""`tidegate check`."""

import sys
from pathlib import Path

import click
from tidegate_dsl import check_file, render, summary

from tidegate.commands.options import JSON, LIMITS
from tidegate.commands.policies import limits_path
from tidegate.commands.terminal import colored, print_json
from tidegate.errors import ANSWER_IS_NO


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--inventory", type=click.Path(path_type=Path), help="Use this inventory instead of the policy's."
)
@LIMITS
@JSON
def command(files: tuple[Path, ...], inventory: Path | None, limits: Path | None, as_json: bool) -> None:
    """Check policies: names, units, ranges, contradictions and their own tests.

    \b
    tidegate check dsl/examples/edge.tide
    """
    results = [check_file(path, inventory=inventory, limits=limits_path(limits)) for path in files]
    failed = any(result.policy is None for result in results)
    if as_json:
        found = [d.to_json() for result in results for d in result.diagnostics]
        print_json({"ok": not failed, "diagnostics": found})
    else:
        for result in results:
            if result.diagnostics:
                click.echo(render(result, color=colored()) + "\n")
        click.echo(
            summary((str(path), result.diagnostics) for path, result in zip(files, results, strict=True))
        )
    sys.exit(ANSWER_IS_NO if failed else 0)
