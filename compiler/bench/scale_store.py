"""What the store's side of `docs/scale.md` is computed from: `python compiler/bench/scale_store.py OUT [ARCHIVE...]`.

Bytes at rest of simulated rows and of M-Lab's (its archives are the further arguments), the time of closing a window,
of carrying histories to it and of selecting from three sizes of one grid. OUT keeps the rows as files, for
`collectors/bench/wire_bytes.py`.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from clickhouse_connect.driver.client import Client
from select_grid import (
    MARK,
    POPS,
    PREFIXES,
    SAMPLES,
    SAMPLES_OF_A_WINDOW,
    SELECT,
    START,
    close_next,
    fill,
    keep_history,
)
from tidegate.schemas.rows import ROW, new_rows
from tidegate.select import qualifying
from tidegate.simulate import simulate
from tidegate.telemetry import mlab
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close
from tidegate_dsl.model import Fleet, Pop

HOURS = 6
DOUBLINGS = 2
REPEATS = 3
RANDOM_ROWS = 100_000
CLOSING_WINDOWS = 5
FLEET = Fleet(
    tuple(Pop(f"pop{n}", (), (), (f"192.0.2.{64 * n}/26", f"2001:db8:f0{n}0::/48")) for n in range(4)),
    ("198.19.255.0/24",),
)


def measure(out: Path, archives: list[Path]) -> dict[str, object]:
    out.mkdir(parents=True, exist_ok=True)
    sources = {
        "simulated": simulate(FLEET, seed=1, start=START, hours=HOURS, out=out / "simulated"),
        "random": [random_rows(out / "random.pb")],
    }
    if archives:
        sources["mlab"] = [one_a_connection(archives, out / "mlab.pb")]
    figures: dict[str, object] = {}
    for name, files in sources.items():
        with store() as client:
            for file in files:
                ingest_file(client, file)
            client.command("OPTIMIZE TABLE socket_samples FINAL")
            figures[f"at_rest.{name}"] = bytes_per_row(client, "socket_samples")
    with store() as client:
        figures["closing"] = closing(client)
    with store() as client:
        figures["carrying"] = carrying(client)
    with store() as client:
        figures["selecting"] = selecting(client)
        for table in ("prefix_windows", "prefix_histories"):
            figures[table] = bytes_per_row(client, table)
    return figures


@contextmanager
def store() -> Iterator[Client]:
    with tempfile.TemporaryDirectory() as directory, open_store(f"chdb://{directory}/store") as client:
        migrate(client)
        yield client


def one_a_connection(archives: list[Path], path: Path) -> Path:
    """A random snapshot of each of M-Lab's connections: no row is like the one before it, as in a poll."""
    read = np.concatenate([block.rows for archive in archives for block in mlab.read(archive)])
    order = np.random.default_rng(1).permutation(len(read))
    _, first = np.unique(read["cookie"][order], return_index=True)
    order = order[np.sort(first)]
    rows = new_rows(len(order))
    for name in ROW.names:
        rows[name] = read[name][order]
    path.write_bytes(rows.tobytes())
    return path


def random_rows(path: Path) -> Path:
    """Every number is drawn from the whole of its type: no telemetry compresses as badly."""
    chance = np.random.default_rng(1)
    rows = new_rows(RANDOM_ROWS)
    for name in ROW.names:
        if ROW[name].kind == "u" and name != "schema_version":
            rows[name] = chance.integers(0, 2 ** (8 * ROW[name].itemsize - 1), RANDOM_ROWS, dtype=np.uint64)
    addresses = chance.integers(0, 256, (RANDOM_ROWS, 16), dtype=np.uint8)
    rows["remote_address"] = addresses.view("V16").reshape(-1)
    rows["observed_at_ns"] = int(START.timestamp()) * 10**9 + chance.integers(0, 10**13, RANDOM_ROWS)
    rows["pop"], rows["host"], rows["congestion_control"] = b"fra2", b"fra2-edge1", b"bbr"
    rows["traffic_class"], rows["local_prefix_length"], rows["remote_prefix_length"] = 1, 56, 56
    path.write_bytes(rows.tobytes())
    return path


def bytes_per_row(client: Client, table: str) -> dict[str, float]:
    """Of the columns' data; what a part has besides is nothing beside parts of millions of rows."""
    size, rows = client.query(
        f"SELECT sum(data_compressed_bytes), sum(rows) FROM system.parts WHERE table = '{table}' AND active"
    ).result_rows[0]
    return {"rows": rows, "bytes_per_row": round(size / rows, 2)}


def closing(client: Client) -> dict[str, float]:
    """Seconds of closing one window whose samples lie among those of windows that are closed."""
    for window in range(CLOSING_WINDOWS):
        start = int(MARK.timestamp()) - (CLOSING_WINDOWS - window) * 300
        client.command(SAMPLES_OF_A_WINDOW, parameters={"start": start})
    client.command("OPTIMIZE TABLE socket_samples FINAL")
    close(client, SELECT, MARK)
    last = {"at": int(MARK.timestamp()) - 300}
    for table in ("prefix_windows", "closed_windows"):
        client.command(
            f"DELETE FROM {table} WHERE toUnixTimestamp(window_start) = {{at:UInt32}}", parameters=last
        )
    begin = time.perf_counter()
    if close(client, SELECT, MARK) != 1:
        raise AssertionError("more than one window was open")
    seconds = time.perf_counter() - begin
    made = client.command(
        f"SELECT count() FROM prefix_windows WHERE toUnixTimestamp(window_start) = {last['at']}"
    )
    if made != POPS * PREFIXES:
        raise AssertionError(f"{made} prefixes in the window")
    samples = POPS * PREFIXES * SAMPLES
    return {"samples": samples, "beside": samples * (CLOSING_WINDOWS - 1), "seconds": round(seconds, 3)}


def carrying(client: Client) -> dict[str, float]:
    """Seconds of carrying the grid's histories to the next window."""
    fill(client)
    keep_history(client, MARK)
    _, seconds = close_next(client)
    return {"prefixes": POPS * PREFIXES, "seconds": round(seconds, 3)}


def selecting(client: Client) -> list[dict[str, float]]:
    """Seconds of a selection from the grid of `select_grid`, and from twice and four times as many POPs."""
    fill(client)
    found = []
    for doubling in range(DOUBLINGS + 1):
        if doubling:
            renamed = f"SELECT * REPLACE (concat(pop, '-{doubling}') AS pop) FROM prefix_windows"
            client.command(f"INSERT INTO prefix_windows {renamed}")
            for table in ("prefix_histories", "whole_histories"):
                client.command(f"TRUNCATE TABLE {table}")
        client.command("OPTIMIZE TABLE prefix_windows FINAL")
        keep_history(client, MARK)
        qualifying(client, SELECT, MARK)
        seconds = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            qualifying(client, SELECT, MARK)
            seconds.append(time.perf_counter() - begin)
        rows = client.command("SELECT count() FROM prefix_windows")
        found.append(
            {
                "pops": POPS * 2**doubling,
                "prefixes": PREFIXES,
                "rows": rows,
                "seconds": round(median(seconds), 3),
            }
        )
    return found


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), list(map(Path, sys.argv[2:]))), indent=2))
