"""Take what the topic has into the embedded store, and print what is there of each host.

    rows.py DSN TOPIC_ADDRESS KAFKA_CONFIG

Prints one JSON object: of each host the POP, rows, polls, sockets, and when its last poll was, in nanoseconds.
"""

import json
import subprocess
import sys

from tidegate.telemetry.store import open_store

QUERY = """
SELECT host, any(pop), uniqExact(pop), count(), uniqExact(observed_at), uniqExact(cookie),
    toUnixTimestamp64Nano(max(observed_at))
FROM socket_samples GROUP BY host
"""


def main() -> None:
    """Ingest to the end of the topic, then count."""
    dsn, topic, config = sys.argv[1:]
    subprocess.run(
        ["tidegate", "--dsn", dsn, "ingest", topic, "--kafka-config", config, "--until-end"],
        check=True,
        stdout=sys.stderr,
    )
    with open_store(dsn) as store:
        rows = store.query(QUERY).result_rows
    names = ("pop", "pops", "rows", "polls", "sockets", "last_ns")
    sys.stdout.write(
        json.dumps({host: dict(zip(names, map(str, values), strict=True)) for host, *values in rows})
    )


if __name__ == "__main__":
    main()
