"""How fast a file of the collector's rows is loaded, against an INSERT SELECT of the same rows between tables."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tidegate.schemas.rows import ROW, new_rows

ROWS = 1_000_000
REPEATS = 5


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.over_insert_select": ...}: the best of five runs of each, in turn; values are incompressible."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.pb"
        random_rows(ROWS).tofile(path)
        loading, floor = compared(Path(directory), ROWS, str(path))
    return figures("ingest.", "a file", ROWS, loading, floor)


def compared(directory: Path, rows: int, source: str) -> tuple[float, float]:
    """Seconds of loading so many rows and of copying them; each time in a new process and a new store.

    Raises:
        CalledProcessError: a run failed; its error output has been passed on.
        RuntimeError: other rows were loaded or copied.
    """
    runs = []
    for repeat in range(REPEATS):
        command = [
            sys.executable,
            str(Path(__file__).with_name("load_once.py")),
            str(directory / f"store-{repeat}"),
            source,
        ]
        runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
        if [runs[-1][table] for table in ("loaded", "copied")] != [rows, rows]:
            raise RuntimeError(f"{rows} rows were to be loaded and copied: {runs[-1]}")
    return min(run["loading"] for run in runs), min(run["copying"] for run in runs)


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


if __name__ == "__main__":
    print(measure())
