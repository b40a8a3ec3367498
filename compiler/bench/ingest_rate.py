"""How fast a file of the collector's rows is loaded, against an INSERT SELECT of the same rows between tables."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from clickhouse_connect.driver.client import Client
from tidegate.schemas.rows import ROW, new_rows
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

ROWS = 1_000_000
REPEATS = 3


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.over_insert_select": ...}: the best of three runs of each, in turn; values are incompressible."""
    with tempfile.TemporaryDirectory() as directory, open_store(f"chdb://{directory}/store") as client:
        migrate(client)
        path = Path(directory) / "rows.pb"
        random_rows(ROWS).tofile(path)
        loading, floor = compared(client, ROWS, lambda: ingest_file(client, path))
    return figures("ingest.", "a file", ROWS, loading, floor)


def compared(client: Client, rows: int, load: Callable[[], object]) -> tuple[float, float]:
    """Seconds of loading so many rows, and of copying them into a table of the same definition, sort key included."""
    loading, copying = [], []
    for _ in range(REPEATS):
        for table in ("socket_samples", "ingested_blocks", "kafka_ranges", "kafka_spools"):
            client.command(f"TRUNCATE TABLE {table}")
        client.command("CREATE OR REPLACE TABLE copied AS socket_samples")
        loading.append(_seconds(load))
        copying.append(_seconds(lambda: client.command("INSERT INTO copied SELECT * FROM socket_samples")))
        counted = [client.command(f"SELECT count() FROM {table}") for table in ("socket_samples", "copied")]
        if counted != [rows, rows]:
            raise RuntimeError(f"{rows} rows were to be loaded and copied: {counted}")
    client.command("DROP TABLE copied SYNC")
    return min(loading), min(copying)


def figures(name: str, of: str, rows: int, loading: float, floor: float) -> dict[str, dict[str, object]]:
    """The ratio and the rate."""
    against = f"INSERT SELECT of {rows} rows, {rows / floor:.0f} rows/s"
    return {
        f"{name}over_insert_select": {
            "value": round(loading / floor, 2),
            "unit": "ratio",
            "against": against,
        },
        f"{name}rows_per_second": {
            "value": round(rows / loading),
            "unit": "rows/s",
            "against": f"{of} of {rows} rows",
        },
    }


def random_rows(count: int) -> npt.NDArray[np.void]:
    """Rows of one host whose numbers do not compress."""
    chance = np.random.default_rng(0)
    rows = new_rows(count)
    for name in ROW.names or ():
        if ROW[name].kind == "u" and name != "schema_version":
            rows[name] = chance.integers(0, 2 ** (8 * ROW[name].itemsize - 1), count, dtype=np.uint64)
    rows["remote_address"] = chance.integers(0, 256, (count, 16), dtype=np.uint8).view("V16").reshape(-1)
    rows["observed_at_ns"] = time.time_ns() // 10**9 * 10**9 - np.arange(count)
    rows["pop"], rows["host"], rows["congestion_control"] = b"fra2", b"fra2-edge1", b"bbr"
    rows["traffic_class"], rows["local_prefix_length"], rows["remote_prefix_length"] = 1, 56, 56
    return rows


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(measure())
