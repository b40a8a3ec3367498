"""Brings a store's schema up to this version of Tidegate: numbered SQL files, each applied once, in order."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.telemetry.schema_form import Form, form_of, rendered

_FILE: Final = re.compile(r"(?P<version>\d{4})_[a-z0-9_]+\.sql")
_LEDGER: Final = """CREATE TABLE IF NOT EXISTS schema_migrations
(
    version UInt32,
    name String,
    digest FixedString(64),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY version"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One SQL file; `digest` is the hex SHA-256 of its bytes."""

    version: int
    name: str
    sql: str
    digest: str

    @property
    def statements(self) -> tuple[str, ...]:
        """The file's statements; each ends with a semicolon at the end of a line."""
        return tuple(
            part.strip() for part in re.split(r";[ \t]*$", self.sql, flags=re.MULTILINE) if part.strip()
        )


def migrations() -> tuple[Migration, ...]:
    """The migrations that this version of Tidegate carries, in order."""
    folder = resources.files("tidegate.telemetry") / "migrations"
    found = []
    for file in folder.iterdir():
        if match := _FILE.fullmatch(file.name):
            data = file.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            found.append(Migration(int(match["version"]), file.name, data.decode(), digest))
    return tuple(sorted(found, key=lambda migration: migration.version))


def migrate(
    client: Client, wanted: Iterable[Migration] | None = None, form: Form | None = None
) -> tuple[int, ...]:
    """Apply what is missing; returns the versions applied now.

    A migration is recorded after its last statement, and its statements may be repeated, so a crash in the
    middle is mended by the next call.

    Args:
        client: of an open store.
        wanted: all migrations in order; by default those that Tidegate carries.
        form: of the tables; by default that which the store has, and of an empty one that of a single server.

    Raises:
        Failure: the store was made by a newer Tidegate, or a migration was changed after it was applied, or the
            store has another form.
    """
    has = form_of(client)
    if form and has and form != has:
        raise Failure(
            f"the telemetry store has the tables of {has.says}, not of {form.says}",
            help="a store keeps its form: make the other one in a database of its own, and copy what you need",
        )
    takes = form or has or Form()
    for statement in rendered(_LEDGER, takes):
        client.command(statement)
    missing = pending(client, wanted)
    for migration in missing:
        for statement in migration.statements:
            for part in rendered(statement, takes):
                client.command(part)
        client.command(
            "INSERT INTO schema_migrations (version, name, digest)"
            " VALUES ({version:UInt32}, {name:String}, {digest:String})",
            parameters={"version": migration.version, "name": migration.name, "digest": migration.digest},
        )
    return tuple(migration.version for migration in missing)


def definition(form: Form) -> tuple[str, ...]:
    """Every statement that makes an empty store one of this Tidegate's, in order."""
    statements = [_LEDGER, *(statement for migration in migrations() for statement in migration.statements)]
    return tuple(part for statement in statements for part in rendered(statement, form))


def pending(client: Client, wanted: Iterable[Migration] | None = None) -> tuple[Migration, ...]:
    """The migrations that the store lacks, in order. Changes nothing.

    Args:
        client: of an open store.
        wanted: all migrations in order; by default those that Tidegate carries.

    Raises:
        Failure: as `migrate`.
    """
    ours = tuple(migrations() if wanted is None else wanted)
    applied: dict[int, tuple[str, str]] = {}
    if client.command("EXISTS TABLE schema_migrations"):
        rows = client.query("SELECT version, name, digest FROM schema_migrations").result_rows
        applied = {int(version): (str(name), digest.decode()) for version, name, digest in rows}
    _refuse_foreign(ours, applied)
    return tuple(migration for migration in ours if migration.version not in applied)


def _refuse_foreign(ours: tuple[Migration, ...], applied: dict[int, tuple[str, str]]) -> None:
    known = {migration.version: migration for migration in ours}
    for version, (name, digest) in sorted(applied.items()):
        if version not in known:
            raise Failure(
                f"the telemetry store has migration {name}, which this Tidegate does not know",
                help="a newer Tidegate made it: install that one, or use another store",
                exit_code=MISSING_PART,
            )
        if known[version].digest != digest:
            raise Failure(
                f"migration {name} was changed after the telemetry store applied it",
                help="restore the file; a change of the schema is a new migration",
                exit_code=BAD_INPUT,
            )
