"""`tidegate schema`."""

import sys
from typing import TYPE_CHECKING

import click

from tidegate.commands.options import JSON
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.terminal import print_json
from tidegate.errors import ANSWER_IS_NO

if TYPE_CHECKING:
    from tidegate.telemetry.migrate import Migration


@click.command("schema")
@click.option(
    "--check", is_flag=True, help="Tell what is pending and change nothing; exit code 1 if anything is."
)
@JSON
@pass_settings
def command(settings: Settings, check: bool, as_json: bool) -> None:
    """Bring the telemetry store up to the schema of this Tidegate; each migration is applied once and in order.

    \b
    tidegate --dsn https://user@host:8443/tidegate schema --check
    """
    from tidegate.telemetry.migrate import migrate, pending  # noqa: PLC0415 - a policy author has no store installed
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    if check:
        missing = _pending(settings.dsn)
    else:
        with open_store(settings.dsn) as client:
            missing = pending(client)
            migrate(client)
    names = [migration.name.removesuffix(".sql") for migration in missing]
    if as_json:
        print_json({"applied": [] if check else names, "pending": names if check else []})
    else:
        for name in names:
            click.echo(f"{'pending' if check else 'applied'} {name}")
    if check and names:
        sys.exit(ANSWER_IS_NO)


def _pending(dsn: str) -> "tuple[Migration, ...]":
    """What the store lacks. An embedded one that was never made is not made by the question."""
    from tidegate.telemetry.dsn import Embedded, parse_dsn  # noqa: PLC0415
    from tidegate.telemetry.migrate import migrations, pending  # noqa: PLC0415
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    target = parse_dsn(dsn)
    if isinstance(target, Embedded) and not (target.directory and target.directory.exists()):
        return migrations()
    with open_store(dsn) as client:
        return pending(client)
