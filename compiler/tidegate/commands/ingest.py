"""`tidegate ingest`."""

from dataclasses import asdict
from pathlib import Path

import click

from tidegate.commands.options import JSON
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import print_json, progress


@click.command("ingest")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@JSON
@pass_settings
def command(settings: Settings, files: tuple[Path, ...], as_json: bool) -> None:
    """Load telemetry files: rows of the collector, or M-Lab's archives. Loading a file again adds nothing.

    \b
    tidegate ingest ams1.pb fra2.pb
    """
    from tidegate.telemetry.ingest import ingest_file  # noqa: PLC0415 - a policy author has no store installed

    reports = []
    with opened(settings) as client:
        for path in files:
            with progress(f"loading {path.name}") as step:
                reports.append(ingest_file(client, path, on_progress=step))
    if as_json:
        print_json([{**asdict(report), "path": str(report.path)} for report in reports])
    else:
        for report in reports:
            left = "".join(f", {count} left out: {reason}" for reason, count in report.left_out.items())
            click.echo(f"{report.path}: {report.added} rows added, {report.rows - report.added} known{left}")
