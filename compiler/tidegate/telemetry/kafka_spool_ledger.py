"""What has come of each host's spool, kept in the store beside the rows.

It is written after a claim's rows are in the store and before the claim is done. A crash in between leaves an open
claim all of whose rows have come: the next process reads it again and has nothing to insert.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from clickhouse_connect.driver.client import Client

from tidegate.telemetry.kafka_spools import MAX_SPOOLS, Spool, Spools

_SETTINGS = {"async_insert": 0, "insert_deduplicate": 0}


def read_spools(client: Client, topic_id: str) -> Spools:
    """What has come by a topic, of those spools that sent last."""
    found = client.query(
        "SELECT toString(spool), runs, newest_ns FROM kafka_spools FINAL"
        " WHERE topic_id = {topic_id:String} ORDER BY seen DESC LIMIT {most:UInt32}",
        parameters={"topic_id": topic_id, "most": MAX_SPOOLS},
    ).result_rows
    return Spools((name, Spool(tuple(runs), newest_ns)) for name, runs, newest_ns in reversed(found))


def write_spools(client: Client, topic_id: str, spools: Mapping[str, Spool], now_ns: int) -> None:
    """Note what has come of these spools; `now_ns` is Unix time."""
    if not spools:
        return
    seen = datetime.fromtimestamp(now_ns // 10**9, UTC)
    client.insert(
        "kafka_spools",
        [[topic_id, name.encode(), spool.runs, spool.newest_ns, seen] for name, spool in spools.items()],
        column_names=["topic_id", "spool", "runs", "newest_ns", "seen"],
        settings=_SETTINGS,
    )
