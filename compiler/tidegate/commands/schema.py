"""`tidegate schema`."""

import sys
from typing import TYPE_CHECKING, Final

import click

from tidegate.commands.options import JSON
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.terminal import print_json
from tidegate.errors import ANSWER_IS_NO, Failure

if TYPE_CHECKING:
    from tidegate.telemetry.migrate import Migration
    from tidegate.telemetry.schema_form import Form

_KAFKA_TABLES: Final = "kafka tables and views"


@click.command("schema")
@click.option(
    "--check", is_flag=True, help="Tell what is pending and change nothing; exit code 1 if anything is."
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="Make the tables of a cluster: replicated, raw telemetry sharded by POP. The store keeps its form.",
)
@click.option(
    "--kafka",
    metavar="COLLECTION",
    help="Have the server read the topics by its Kafka engine; brokers and secrets are its named collection.",
)
@click.option(
    "--print", "as_sql", is_flag=True, help="Print all statements, for an empty store, and open none."
)
@JSON
@pass_settings
def command(
    settings: Settings, check: bool, cluster: str | None, kafka: str | None, as_sql: bool, as_json: bool
) -> None:
    """Bring the telemetry store up to the schema of this Tidegate; each migration is applied once and in order.

    \b
    tidegate --dsn https://user@host:8443/tidegate schema --check
    tidegate schema --cluster fleet --kafka tidegate_kafka --print
    """
    from tidegate.telemetry.schema_form import Form  # noqa: PLC0415 - a policy author has no store installed

    form = Form(cluster) if cluster else None
    if as_sql:
        if check or as_json:
            raise click.UsageError("--print stands alone: it opens no store")
        _print(form or Form(), kafka)
        return
    names = _pending(settings.dsn, form, kafka) if check else _apply(settings.dsn, form, kafka)
    if as_json:
        print_json({"applied": [] if check else names, "pending": names if check else []})
    else:
        for name in names:
            click.echo(f"{'pending' if check else 'applied'} {name}")
    if check and names:
        sys.exit(ANSWER_IS_NO)


def _print(form: "Form", kafka: str | None) -> None:
    from tidegate.telemetry.migrate import definition  # noqa: PLC0415
    from tidegate.telemetry.schema_kafka import kafka_definition  # noqa: PLC0415

    for statement in (*definition(form), *(kafka_definition(kafka, form) if kafka else ())):
        click.echo(f"{statement};\n")


def _apply(dsn: str, form: "Form | None", kafka: str | None) -> list[str]:
    from tidegate.telemetry.migrate import migrate, pending  # noqa: PLC0415
    from tidegate.telemetry.schema_form import Form, form_of  # noqa: PLC0415
    from tidegate.telemetry.schema_kafka import make_kafka_tables  # noqa: PLC0415
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    if kafka:
        _refuse_embedded(dsn)
    with open_store(dsn) as client:
        names = [_name(migration) for migration in pending(client)]
        migrate(client, form=form)
        if kafka and make_kafka_tables(client, kafka, form_of(client) or Form()):
            names.append(_KAFKA_TABLES)
    return names


def _pending(dsn: str, form: "Form | None", kafka: str | None) -> list[str]:
    """What the store lacks. An embedded one that was never made is not made by the question."""
    from tidegate.telemetry.dsn import Embedded, parse_dsn  # noqa: PLC0415
    from tidegate.telemetry.migrate import migrations, pending  # noqa: PLC0415
    from tidegate.telemetry.schema_form import Form, form_of  # noqa: PLC0415
    from tidegate.telemetry.schema_kafka import kafka_tables_differ  # noqa: PLC0415
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    if kafka:
        _refuse_embedded(dsn)
    target = parse_dsn(dsn)
    if isinstance(target, Embedded) and not (target.directory and target.directory.exists()):
        return [_name(migration) for migration in migrations()]
    with open_store(dsn) as client:
        names = [_name(migration) for migration in pending(client)]
        if kafka and kafka_tables_differ(client, kafka, form_of(client) or form or Form()):
            names.append(_KAFKA_TABLES)
    return names


def _refuse_embedded(dsn: str) -> None:
    from tidegate.telemetry.dsn import Embedded, parse_dsn  # noqa: PLC0415

    if isinstance(parse_dsn(dsn), Embedded):
        raise Failure(
            "the embedded telemetry store has no Kafka engine",
            help="read the topic by `tidegate ingest kafka://HOST:PORT/TOPIC`",
        )


def _name(migration: "Migration") -> str:
    return migration.name.removesuffix(".sql")
