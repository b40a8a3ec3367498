"""`tidegate simulate`."""

from datetime import datetime
from pathlib import Path

import click
from tidegate_dsl import read_fleet

from tidegate.commands.options import INVENTORY, Moment
from tidegate.commands.terminal import status


@click.command("simulate")
@INVENTORY
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for one file a POP.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of all that is drawn.")
@click.option(
    "--start", type=Moment(), default="2026-11-20T00:00:00Z", show_default=True, help="First sample."
)
@click.option(
    "--hours", type=click.IntRange(1, 24 * 31), default=6, show_default=True, help="How much telemetry."
)
def command(inventory: Path, out: Path, seed: int, start: datetime, hours: int) -> None:
    """Write the telemetry of a simulated fleet, to try policies on. The same seed gives the same bytes.

    \b
    tidegate simulate --inventory inventory --out build/simulated
    """
    import tidegate.telemetry  # noqa: PLC0415, F401 - says which extra is missing
    from tidegate.simulate import simulate as run_simulation  # noqa: PLC0415

    with status("simulating a fleet"):
        paths = run_simulation(read_fleet(inventory), seed=seed, start=start, hours=hours, out=out)
    for path in paths:
        click.echo(path)
