"""What has come of each host's spool, kept in the store beside the rows.

It is written after a claim's rows are in the store and before the claim is done. A crash in between leaves an open
claim all of whose rows have come: the next process reads it again and has nothing to insert.
"""

from collections.abc import Mapping

from clickhouse_connect.driver.client import Client

from tidegate.json_insertion import insert_json
from tidegate.telemetry.kafka_spools import MAX_SPOOLS, Spool, Spools

_COLUMNS = ("topic_id", "spool", "runs", "newest_ns", "seen")
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
    rows = [[topic_id, name, spool.runs, spool.newest_ns, now_ns // 10**9] for name, spool in spools.items()]
    insert_json(client, "kafka_spools", _COLUMNS, rows, _SETTINGS)
