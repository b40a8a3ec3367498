"""How fast a file of the collector's rows is loaded, against an INSERT SELECT of the same rows between tables.

Twice: rows of random numbers, which nothing compresses, and rows of a simulated fleet.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
from tidegate.schemas.rows import ROW, new_rows
from tidegate.simulate import simulate
from tidegate_dsl import read_fleet

ROWS = 1_000_000
REPEATS = 5
HOURS = 11  # in which the fleet makes a million rows
ROOT = Path(__file__).parents[2]

Runs = list[dict[str, float]]


def measure() -> dict[str, dict[str, object]]:
    """{"ingest.over_insert_select": ..., "ingest.fleet_over_insert_select": ...}.

    What is made in tempfile.tempdir stays there: where files were removed lately, a file system may be slow to make
    others (ext4 without a journal looks for their inodes), and a load makes four times as many as a copy.
    """
    found: dict[str, dict[str, object]] = {}
    for kind, rows in LOADS.items():
        directory = Path(tempfile.mkdtemp())
        path = directory / "rows.pb"
        rows(ROWS).tofile(path)
        found |= figures(f"ingest.{kind}", "a file", ROWS, compared(directory, ROWS, str(path)))
    return found


def compared(directory: Path, rows: int, source: str) -> Runs:
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
    return runs


def figures(name: str, of: str, rows: int, runs: Runs) -> dict[str, dict[str, object]]:
    """The ratio and the rate, medians: the machine's speed changes, and a run's two parts meet the same."""
    ratios = sorted(run["loading"] / run["copying"] for run in runs)
    loading, copying = (median(run[work] for run in runs) for work in ("loading", "copying"))
    against = (
        f"INSERT SELECT of {rows} rows, {rows / copying:.0f} rows/s; {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )
    return {
        f"{name}over_insert_select": {
            "value": round(median(ratios), 2),
            "unit": "ratio",
            "against": f"{against} in {len(runs)} runs",
        },
        f"{name}rows_per_second": {
            "value": round(rows / loading),
            "unit": "rows/s",
            "against": f"{of} of {rows} rows; {rows / min(run['loading'] for run in runs):.0f} at best",
        },
    }


def fleet_rows(count: int) -> npt.NDArray[np.void]:
    """Rows of the inventory's fleet, simulated, of the last day."""
    with tempfile.TemporaryDirectory() as directory:
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
        paths = simulate(
            read_fleet(ROOT / "inventory"), seed=1, start=start, hours=HOURS, out=Path(directory)
        )
        return np.concatenate([np.fromfile(path, np.uint8) for path in paths]).view(ROW)[:count]


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


LOADS: dict[str, Callable[[int], npt.NDArray[np.void]]] = {"": random_rows, "fleet_": fleet_rows}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tempfile.tempdir:
        print(json.dumps(measure(), indent=2))
