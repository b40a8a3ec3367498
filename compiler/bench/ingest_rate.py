"""How fast a file of the collector's rows is loaded, against an INSERT SELECT of the same rows between tables."""

import tempfile
import time
from pathlib import Path

import numpy as np
from tidegate.schemas.rows import ROW, new_rows
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

ROWS = 500_000
REPEATS = 2


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.over_insert_select": ...}: the better of two runs of each, in turn; values are incompressible."""
    ingested, copied = [], []
    with tempfile.TemporaryDirectory() as directory, open_store(f"chdb://{directory}/store") as client:
        migrate(client)
        for seed in range(REPEATS):
            path = Path(directory) / f"{seed}.pb"
            path.write_bytes(_random_rows(seed).tobytes())
            client.command("TRUNCATE TABLE socket_samples")
            begin = time.perf_counter()
            ingest_file(client, path)
            ingested.append(time.perf_counter() - begin)
            client.command("CREATE OR REPLACE TABLE copied AS socket_samples")
            begin = time.perf_counter()
            client.command("INSERT INTO copied SELECT * FROM socket_samples")
            copied.append(time.perf_counter() - begin)
    floor = min(copied)
    return {
        "ingest.over_insert_select": {
            "value": round(min(ingested) / floor, 2),
            "unit": "ratio",
            "against": f"INSERT SELECT of {ROWS} rows, {ROWS / floor:.0f} rows/s",
        },
        "ingest.rows_per_second": {
            "value": round(ROWS / min(ingested)),
            "unit": "rows/s",
            "against": f"a file of {ROWS} rows",
        },
    }


def _random_rows(seed: int):
    chance = np.random.default_rng(seed)
    rows = new_rows(ROWS)
    for name in ROW.names:
        if ROW[name].kind == "u" and name != "schema_version":
            rows[name] = chance.integers(0, 2 ** (8 * ROW[name].itemsize - 1), ROWS, dtype=np.uint64)
    rows["remote_address"] = chance.integers(0, 256, (ROWS, 16), dtype=np.uint8).view("V16").reshape(-1)
    rows["observed_at_ns"] = time.time_ns() // 10**9 * 10**9 - np.arange(ROWS)
    rows["pop"], rows["host"], rows["congestion_control"] = b"fra2", b"fra2-edge1", b"bbr"
    rows["traffic_class"], rows["local_prefix_length"], rows["remote_prefix_length"] = 1, 56, 56
    return rows
