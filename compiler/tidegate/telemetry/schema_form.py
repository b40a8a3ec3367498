"""The two forms of the schema: one server's tables, or a cluster's; both are made of the same migrations.

In a cluster the raw telemetry lies in replicated tables `NAME_local`, sharded by POP, behind a Distributed table
NAME. Everything else is small and lies whole on every server, so that it is read and written as on one server.
"""

import re
from dataclasses import dataclass
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure

SHARDED: Final = frozenset({"socket_samples", "transfers", "host_health"})
LEDGER: Final = "schema_migrations"
_COMMENT: Final = "tidegate cluster "
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_STATEMENT: Final = re.compile(r"(?P<comment>(?:--[^\n]*\n|\s)*)(?P<text>.*)", re.DOTALL)
_CREATE: Final = re.compile(
    r"CREATE TABLE IF NOT EXISTS (?P<table>\w+)(?P<columns>\n\(\n.*?\n\)\n)"
    r"ENGINE = (?P<engine>\w*MergeTree)(?:\((?P<arguments>[^)]*)\))?(?P<rest>.*)",
    re.DOTALL,
)
_ALTER: Final = re.compile(
    r"ALTER TABLE (?P<table>\w+)(?P<rest>\s+(?P<clause>(?:ADD|DROP) COLUMN|MODIFY TTL|MODIFY SETTING) .*)",
    re.DOTALL,
)
_WINDOW: Final = re.compile(r"non_replicated_deduplication_window = (\d+)")
# A token must outlive a retry, and the rows live three days; ClickHouse's own default is an hour.
_WINDOW_SECONDS: Final = 7 * 86_400
# What every statement of a client in a cluster is run with: an insert returns when the shards have its rows.
CLIENT_SETTINGS: Final = {"distributed_foreground_insert": "1"}


@dataclass(frozen=True, slots=True)
class Form:
    """`cluster` names one of the servers' own `remote_servers`; None is the form of a single server."""

    cluster: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name that could not stand in a statement.

        Raises:
            Failure: it is none.
        """
        if self.cluster is not None and not _NAME.fullmatch(self.cluster):
            raise Failure(
                f"`{self.cluster}` is not the name of a cluster",
                help="SELECT DISTINCT cluster FROM system.clusters lists those of a server",
            )

    @property
    def on_cluster(self) -> str:
        """What stands behind a table's name in DDL."""
        return f" ON CLUSTER '{self.cluster}'" if self.cluster else ""

    @property
    def says(self) -> str:
        """How messages call it."""
        return f"cluster {self.cluster}" if self.cluster else "a single server"


def rendered(statement: str, form: Form) -> tuple[str, ...]:
    """A migration's statement in a form; in that of a single server it stays as it is.

    Raises:
        ValueError: a statement that has no cluster form.
    """
    if form.cluster is None:
        return (statement,)
    parts = _STATEMENT.fullmatch(statement)
    comment, text = (parts["comment"], parts["text"]) if parts else ("", statement)
    if create := _CREATE.fullmatch(text):
        made = _created(create, form)
    elif alter := _ALTER.fullmatch(text):
        made = _altered(alter, form)
    else:
        raise ValueError(f"no cluster form of: {text[:60]}")
    return (comment + made[0], *made[1:])


def form_of(client: Client) -> Form | None:
    """The form that a store has, as its ledger of migrations says; None: it has no tables yet."""
    found = client.query(
        "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = {ledger:String}",
        parameters={"ledger": LEDGER},
    ).result_rows
    if not found:
        return None
    comment = str(found[0][0])
    return Form(comment.removeprefix(_COMMENT)) if comment.startswith(_COMMENT) else Form()


def join_cluster(client: Client) -> None:
    """Where the store is a cluster: make inserts wait for the shards, and this server's ledgers complete.

    A ledger that lags behind would have rows inserted twice: what another server wrote is awaited here, once, and
    what this process writes it reads from the same server. Does nothing on a single server.

    Raises:
        ClickHouseError: this server does not catch up.
    """
    form = form_of(client)
    if form is None or form.cluster is None:
        return
    for name, value in CLIENT_SETTINGS.items():
        client.set_client_setting(name, value)
    whole = client.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase()"
        " AND startsWith(engine, 'Replicated') AND NOT endsWith(name, '_local') ORDER BY name"
    ).result_rows
    for (table,) in whole:
        client.command(f"SYSTEM SYNC REPLICA `{table}`")


def _created(create: re.Match[str], form: Form) -> tuple[str, ...]:
    table = create["table"]
    sharded = table in SHARDED
    local = f"{table}_local" if sharded else table
    shard, replica = ("{shard}", "{replica}") if sharded else ("whole", "{shard}_{replica}")
    path = f"'/clickhouse/tables/{shard}/{{database}}/{{table}}', '{replica}'"
    arguments = f"{path}, {create['arguments']}" if create["arguments"] else path
    rest = _replicated_window(create["rest"])
    if table == LEDGER:
        rest += f"\nCOMMENT '{_COMMENT}{form.cluster}'"
    made = (
        f"CREATE TABLE IF NOT EXISTS {local}{form.on_cluster}{create['columns']}"
        f"ENGINE = Replicated{create['engine']}({arguments}){rest}"
    )
    if not sharded:
        return (made,)
    engine = f"Distributed('{form.cluster}', currentDatabase(), '{local}', cityHash64(pop))"
    return (made, f"CREATE TABLE IF NOT EXISTS {table}{form.on_cluster} AS {local}\nENGINE = {engine}")


def _altered(alter: re.Match[str], form: Form) -> tuple[str, ...]:
    table, rest = alter["table"], _replicated_window(alter["rest"])
    if table not in SHARDED:
        # Its replicas are all servers, and one tells the others of columns and of a TTL; of settings it does not.
        on = form.on_cluster if alter["clause"] == "MODIFY SETTING" else ""
        return (f"ALTER TABLE {table}{on}{rest}",)
    local = f"ALTER TABLE {table}_local{form.on_cluster}{rest}"
    if not alter["clause"].endswith("COLUMN"):
        return (local,)  # a Distributed table has no TTL and no parts
    return (local, f"ALTER TABLE {table}{form.on_cluster}{rest}")


def _replicated_window(text: str) -> str:
    return _WINDOW.sub(
        rf"replicated_deduplication_window = \1, replicated_deduplication_window_seconds = {_WINDOW_SECONDS}",
        text,
    )
