"""Options and types that several commands share."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from tidegate.times import parse_time

# What ClickHouse's DateTime holds.
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2106, 1, 1, tzinfo=UTC)


class Moment(click.ParamType[datetime]):
    """A UTC time such as 2026-11-20T06:00:00Z."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:  # noqa: ANN401
        """As click asks for it."""
        if isinstance(value, datetime):
            return value
        try:
            moment = parse_time(value)
            if _EARLIEST <= moment < _LATEST:
                return moment
            self.fail(f"{value} is not between {_EARLIEST:%Y} and {_LATEST:%Y}", param, ctx)
        except ValueError:
            self.fail(f"`{value}` is not a UTC time such as 2026-11-20T06:00:00Z", param, ctx)


AS_OF: Final = click.option(
    "--as-of", type=Moment(), help="Plan for this time instead of now, e.g. 2026-11-20T06:00:00Z."
)
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
LIMITS: Final = click.option(
    "--limits",
    type=click.Path(path_type=Path),
    help="Limits that policies must keep; default: those that the guard reads.",
)
INVENTORY: Final = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    required=True,
    help="Directory of the inventory's hosts.yml.",
)
