"""`python -m tidegate.scale`: what the telemetry of a fleet takes."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import click

from tidegate.errors import Failure
from tidegate.files import read_text, write_atomically
from tidegate.scale.assumed import Assumed
from tidegate.scale.measured import MEASURED
from tidegate.scale.tables import FLEETS, tables, written_into


def _parameters(command: Callable[..., None]) -> Callable[..., None]:
    """An option for each field of `Assumed`."""
    for each in reversed(fields(Assumed)):
        option = click.option(
            f"--{each.name.replace('_', '-')}",
            each.name,
            type=click.FloatRange(min=0, min_open=True, max=1e12),
            default=each.default,
            show_default=True,
            metavar="NUMBER",
            help=f"{each.metadata['unit']}: {each.metadata['what']}",
        )
        command = option(command)
    return command


@click.command()
@click.option("--pops", type=click.IntRange(1, 1_000_000), multiple=True, default=FLEETS, show_default=True)
@click.option(
    "--write", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Write them into it."
)
@_parameters
def main(pops: tuple[int, ...], write: Path | None, **assumed: float) -> None:
    r"""Print the tables of docs/scale.md, of your own fleet where you say what it is like.

    \b
    python -m tidegate.scale --pops 40 --hosts-per-pop 12 --sockets-per-host 30000 --sample 10
    """
    made = tables(Assumed(**assumed), MEASURED, pops)
    if write is None:
        click.echo("\n".join(made.values()), nl=False)
        return
    try:
        write_atomically(write, written_into(read_text(write, max_bytes=2**20), made))
    except Failure as failure:
        click.echo(f"error: {failure.message}", err=True)
        raise SystemExit(failure.exit_code) from failure


if __name__ == "__main__":
    main(prog_name="python -m tidegate.scale")
