"""How long selection takes over closed windows: 50 POPs x 2,000 prefixes x 72 windows in the embedded engine.

DuckDB and Polars select the same rows of the same windows twice: ranking the values themselves, as who keeps no
membership must, and from the member bits that Tidegate made when it closed the windows. Tidegate reads the
history that was carried to the last window; what that takes for each window is a figure of its own.

It runs in a process of its own: what other benches leave on Python's heap its collector would walk while the 13,000
results are made.
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from clickhouse_connect.driver.client import Client
from select_duckdb import DuckDb
from select_polars import Polars
from tidegate.history import is_kept, keep
from tidegate.metrics import window_columns
from tidegate.select import Measurement, qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close, lookback, view_of
from tidegate_dsl.model import Bound, Clause, Condition, Rank, Select

POPS, PREFIXES, WINDOWS, STEP_S = 50, 2_000, 72, 300
START = datetime(2026, 11, 20, tzinfo=UTC)
MARK = datetime(2026, 11, 20, 6, tzinfo=UTC)
REPEATS = 5
SAMPLES = 24  # of a prefix in a window
CLAUSE = Clause(1, "bench")

SELECT = Select(
    name="slow",
    clause=CLAUSE,
    metric="delivery_rate",
    prefix_length_ipv4=24,
    prefix_length_ipv6=56,
    traffic="client",
    where=(),
    over_us=WINDOWS * STEP_S * 10**6,
    step_us=STEP_S * 10**6,
    rank=Rank("bottom", 200_000, None, CLAUSE),
    min_duty_cycle=Bound(600_000, CLAUSE),
    max_flap_rate=Bound(200_000, CLAUSE),
    min_windows=Bound(54, CLAUSE),
    min_samples=Bound(20, CLAUSE),
    exclude=(
        Condition("min_rtt", "<", 10_000, CLAUSE),
        Condition("retransmit_ratio", "<", 5_000, CLAUSE),
    ),
    hold_us=0,
    hold=None,
)

_COLUMNS = (
    "view, pop, prefix, prefix_length, window_start, samples, value, threshold, member,"
    " delivery_rate, min_rtt, rtt, cwnd, retransmitted_segments, data_segments"
)
# A prefix's rate is its own level with noise of each window; 8% of the windows are not observed. The threshold is the
# one of the language, the ceil(n / 5)-th smallest value.
_FILL = f"""
INSERT INTO prefix_windows ({_COLUMNS})
WITH grid AS (
    SELECT p.number AS pop_number, x.number AS prefix_number, w.number AS window_number,
        cityHash64(pop_number, prefix_number) AS of_prefix,
        cityHash64(pop_number, prefix_number, window_number) AS of_window,
        1000000 + (of_prefix % 1000) * 100000 AS level,
        toUInt64(level * (50 + of_window % 100) / 100) AS rate
    FROM numbers({POPS}) AS p, numbers({PREFIXES}) AS x, numbers({WINDOWS}) AS w
    WHERE of_window % 100 >= 8
)
SELECT {{view:String}}, concat('pop', toString(pop_number)),
    toIPv6(concat('2001:db8:', hex(toUInt16(row.1)), '::')), 56,
    toDateTime({int(START.timestamp())} + window_number * {STEP_S}, 'UTC'),
    20 + row.3 % 50, row.4, threshold, row.4 <= threshold, row.4,
    toUInt32(5000 + row.2 % 100000), 0, 0, row.3 % 40, 1000
FROM (
    SELECT pop_number, window_number, arraySort(groupArray(rate))[intDiv(count() + 4, 5)] AS threshold,
        groupArray((prefix_number, of_prefix, of_window, rate)) AS rows
    FROM grid GROUP BY pop_number, window_number
)
ARRAY JOIN rows AS row
"""
_REGISTER = f"""
INSERT INTO closed_windows (view, window_start)
SELECT {{view:String}}, toDateTime({int(START.timestamp())} + number * {STEP_S}, 'UTC') FROM numbers({WINDOWS})
"""
SAMPLES_OF_A_WINDOW = f"""
INSERT INTO socket_samples (observed_at, pop, host, traffic_class, cookie, remote_address, remote_prefix_length,
    delivery_rate, min_rtt_us, rtt_us, snd_cwnd, data_segs_out, total_retrans)
SELECT fromUnixTimestamp64Nano(({{start:Int64}} + s.number * 12) * 1000000000, 'UTC'),
    concat('pop', toString(p.number)), 'edge1', 'client', cityHash64(p.number, x.number, s.number % 8) AS socket,
    toIPv6(concat('2001:db8:', hex(toUInt16(x.number)), '::')), 56,
    1000000 + cityHash64(socket, s.number) % 100000000, 10000 + socket % 100000, 20000 + socket % 100000,
    10 + socket % 90, 1000 + s.number, socket % 40
FROM numbers({POPS}) AS p, numbers({PREFIXES}) AS x, numbers({SAMPLES}) AS s
"""
_FOR_PEERS = """
SELECT toString(pop) AS pop, toString(prefix) AS prefix, prefix_length, window_start, value, member, delivery_rate,
    min_rtt, retransmitted_segments, data_segments
FROM prefix_windows ORDER BY prefix_windows.pop, prefix_windows.prefix, prefix_length, window_start
"""


def measure() -> dict[str, dict[str, object]]:
    """Seconds of a selection, and their ratio to those of two peers: medians of runs that take turns, warm.

    Raises:
        CalledProcessError: the measurement failed; its error output has been passed on.
    """
    done = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, check=True)
    figures: dict[str, dict[str, object]] = json.loads(done.stdout)
    return figures


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process."""
    with (
        tempfile.TemporaryDirectory() as directory,
        open_store(f"chdb://{Path(directory) / 'store'}") as client,
    ):
        migrate(client)
        fill(client)
        keep_history(client, MARK)
        windows = client.query_arrow(_FOR_PEERS)
        duckdb = DuckDb(windows, SELECT, int(START.timestamp()))
        polars = Polars(windows, SELECT, int(START.timestamp()))
        contenders: dict[str, Callable[[], Sequence[object]]] = {
            "tidegate": lambda: qualifying(client, SELECT, MARK),
            "duckdb": lambda: duckdb.select(given_members=False),
            "polars": lambda: polars.select(given_members=False),
            "duckdb_given_members": lambda: duckdb.select(given_members=True),
            "polars_given_members": lambda: polars.select(given_members=True),
        }
        seconds, selected = _in_turns(contenders)
        closing, keeping = close_next(client)
        size = f"{windows.num_rows} closed windows ({POPS} POPs x {PREFIXES} prefixes x {WINDOWS} windows)"
    ours = seconds.pop("tidegate")
    figures: dict[str, dict[str, object]] = {
        "select.seconds": {
            "value": round(median(ours), 3),
            "unit": "s",
            "against": f"{size}, {selected} selected; {min(ours):.3f} s at best",
        }
    }
    figures["select.close_window_seconds"] = {
        "value": round(closing + keeping, 3),
        "unit": "s",
        "against": f"one window more, of {SAMPLES} samples of each prefix: {closing:.3f} s to close it,"
        f" {keeping:.3f} s to carry the history that selection reads",
    }
    for peer, taken in seconds.items():
        how = "reads the member bits" if peer.endswith("given_members") else "ranks the values itself"
        times = f"{median(taken):.3f} s, {min(taken):.3f} s at best"
        figures[f"select.over_{peer}"] = {
            "value": round(median(ours) / median(taken), 3),
            "unit": "ratio",
            "against": f"a query that {how}: the same {selected} rows in {times}",
        }
    return figures


def fill(client: Client) -> None:
    """Make the grid's closed windows."""
    client.command(_FILL, parameters={"view": view_of(SELECT)})
    client.command(_REGISTER, parameters={"view": view_of(SELECT)})
    client.command("OPTIMIZE TABLE prefix_windows FINAL")


def keep_history(client: Client, mark: datetime) -> None:
    """Make the history that a selection at `mark` reads."""
    keep(client, view_of(SELECT), lookback(SELECT, mark)[-1], SELECT.step_us, window_columns(SELECT))


def close_next(client: Client) -> tuple[float, float]:
    """Seconds of closing the window after `MARK`, and of carrying the history to it."""
    mark = MARK + timedelta(seconds=STEP_S)
    client.command(SAMPLES_OF_A_WINDOW, parameters={"start": int(MARK.timestamp())})
    begin = time.perf_counter()
    if close(client, SELECT, mark) != 1:
        raise AssertionError("more than one window was open")
    closed = time.perf_counter()
    keep_history(client, mark)
    kept = time.perf_counter()
    if not is_kept(client, view_of(SELECT), MARK):
        raise AssertionError("the next window's history was not made")
    return closed - begin, kept - closed


def _in_turns(contenders: dict[str, Callable[[], Sequence[object]]]) -> tuple[dict[str, list[float]], int]:
    """Each contender's seconds, run after a run to warm up; what else the machine does meets all of them."""
    expected = sorted(map(_row, contenders["tidegate"]()))
    for name, run in contenders.items():
        if sorted(map(_row, run())) != expected:
            raise AssertionError(f"{name} selects other rows")
    gc.freeze()  # the collector need not walk what importing the peers made
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(REPEATS):
        for name, run in contenders.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return seconds, len(expected)


def _row(selected: object) -> object:
    """A measurement as the peers give it."""
    if not isinstance(selected, Measurement):
        return selected
    address, _, length = selected.prefix.partition("/")
    persistence = (selected.windows, selected.member_windows, selected.flips, selected.adjacent_pairs)
    sums = (selected.retransmitted_segments, selected.data_segments)
    return (selected.pop, address, int(length), *persistence, selected.delivery_rate, selected.min_rtt, *sums)


if __name__ == "__main__":
    print(json.dumps(measure_here(), indent=2))
