"""Options and types that several commands share."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

# What ClickHouse's DateTime holds.
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2106, 1, 1, tzinfo=UTC)
_FORMS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d")  # the last two are those of policies


class Moment(click.ParamType[datetime]):
    """A UTC time such as 2026-11-20T06:00:00Z, 2026-11-20T06:00Z or 2026-11-20."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:  # noqa: ANN401
        """As click asks for it."""
        if isinstance(value, datetime):
            return value
        moment = _moment(value)
        if moment is None:
            self.fail(f"`{value}` is not a UTC time such as 2026-11-20T06:00:00Z", param, ctx)
        if not _EARLIEST <= moment < _LATEST:
            self.fail(f"{value} is not between {_EARLIEST:%Y} and {_LATEST:%Y}", param, ctx)
        return moment


def _moment(text: str) -> datetime | None:
    """The time in the first form that fits; None where none does."""
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC)
    return None


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
