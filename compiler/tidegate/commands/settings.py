"""Options of the whole command, as each subcommand gets them."""

from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the whole command.

    Attributes:
        state: the directory of saved plans and of the embedded store.
        dsn: where telemetry is stored.
        opa: the Open Policy Agent binary.
    """

    state: Path
    dsn: str
    opa: str


pass_settings = click.make_pass_decorator(Settings)
