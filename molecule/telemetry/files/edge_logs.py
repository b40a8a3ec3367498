"""Take transfers and host health from their topics into the embedded store, and print what is there.

    edge_logs.py DSN BROKERS KAFKA_CONFIG

Prints one JSON object: of each host the transfers, how many of them are different, what they have in common, the rows
of its health, and when the last of these was.
"""

import json
import sys
from pathlib import Path

from tidegate.telemetry.kafka_address import Topic, read_settings
from tidegate.telemetry.kafka_consumer import open_topic
from tidegate.telemetry.kafka_ingest import ingest_topic
from tidegate.telemetry.store import open_store

QUERY = """
SELECT host, pop, toString(count()), toString(uniqExact(finished_at, connection, connection_requests)),
    toString(min(bytes)), toString(max(bytes)), arraySort(groupUniqArray(toString(traffic_class))),
    arraySort(groupUniqArray(concat(toString(remote_address), '/', toString(remote_prefix_length)))),
    toString((SELECT count() FROM host_health AS h WHERE h.host = transfers.host AND h.interval_us > 0)),
    toString((SELECT toUnixTimestamp64Nano(max(observed_at)) FROM host_health AS h WHERE h.host = transfers.host))
FROM transfers GROUP BY host, pop
"""
NAMES = ("pop", "transfers", "different", "least", "most", "classes", "prefixes", "health", "healthy_ns")


def main() -> None:
    """Ingest to the end of both topics, then count."""
    dsn, brokers, config = sys.argv[1:]
    settings = read_settings(Path(config))
    with open_store(dsn) as store:
        for name in ("tidegate.transfers", "tidegate.hosts"):
            with open_topic(Topic(brokers, name), settings) as topic:
                ingest_topic(store, topic, follow=False)
        rows = store.query(QUERY).result_rows
    sys.stdout.write(json.dumps({host: dict(zip(NAMES, values, strict=True)) for host, *values in rows}))


if __name__ == "__main__":
    main()
