"""How long selection takes over closed windows: 50 POPs x 2,000 prefixes x 72 windows in the embedded engine."""

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from tidegate.select import qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import view_of
from tidegate_dsl.model import Bound, Clause, Condition, Rank, Select

POPS, PREFIXES, WINDOWS, STEP_S = 50, 2_000, 72, 300
START = datetime(2026, 11, 20, tzinfo=UTC)
MARK = datetime(2026, 11, 20, 6, tzinfo=UTC)
REPEATS = 5
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

# A prefix's rate is its own level with noise of each window; 8% of the windows are not observed.
_FILL = f"""
INSERT INTO prefix_windows
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
    toIPv6(concat('2001:db8:', hex(toUInt16(prefix_number)), '::')), 56,
    toDateTime({int(START.timestamp())} + window_number * {STEP_S}, 'UTC'),
    20 + of_window % 50, rate, threshold, rate <= threshold, rate,
    toUInt32(20000 + of_prefix % 100000), 0, 0, of_window % 40, 1000
FROM (
    SELECT *, quantileExactLow(0.2)(rate) OVER (PARTITION BY pop_number, window_number) AS threshold FROM grid
)
"""


def measure() -> dict[str, dict[str, object]]:
    """{"select.seconds": ...}: the median of repeated runs, warm."""
    with (
        tempfile.TemporaryDirectory() as directory,
        open_store(f"chdb://{Path(directory) / 'store'}") as client,
    ):
        migrate(client)
        client.command(_FILL, parameters={"view": view_of(SELECT)})
        client.command("OPTIMIZE TABLE prefix_windows FINAL")
        rows = client.query("SELECT count() FROM prefix_windows").result_rows[0][0]
        seconds = []
        for _ in range(REPEATS + 1):
            begin = time.perf_counter()
            selected = qualifying(client, SELECT, MARK)
            seconds.append(time.perf_counter() - begin)
        return {
            "select.seconds": {
                "value": round(median(seconds[1:]), 3),
                "unit": "s",
                "against": f"{rows} closed windows ({POPS} POPs x {PREFIXES} prefixes x {WINDOWS} windows),"
                f" {len(selected)} selected",
            }
        }
