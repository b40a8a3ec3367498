"""The telemetry store that a command works on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidegate.commands.settings import Settings

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


@contextmanager
def opened(settings: Settings) -> Iterator["Client"]:
    """The store, its tables made."""
    from tidegate.telemetry.migrate import migrate  # noqa: PLC0415 - a policy author has no store installed
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    with open_store(settings.dsn) as client:
        migrate(client)
        yield client
