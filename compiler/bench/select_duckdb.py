"""The same selection in DuckDB: a native table, bit masks as 128-bit integers, medians of what qualifies only."""

from typing import Final

import duckdb
import pyarrow as pa
from tidegate_dsl.model import Select

_MIN_RTT, _RETRANSMITS = 0, 1  # the grid's two exclude clauses, in the order of the file


class DuckDb:
    """Closed windows in a native table, its POPs, which are few and known, as an enumeration."""

    def __init__(self, windows: pa.Table, select: Select, start_s: int) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        self._connection.execute("SET enable_progress_bar = false")
        self._connection.register("arrow", windows)
        self._connection.execute("CREATE TYPE pop_names AS ENUM (SELECT DISTINCT pop FROM arrow)")
        self._connection.execute(
            "CREATE TABLE windows AS SELECT * REPLACE (pop::pop_names AS pop) FROM arrow"
        )
        self._connection.unregister("arrow")
        self._sql = {given: _sql(select, start_s, given_members=given) for given in (False, True)}

    def select(self, *, given_members: bool) -> list[tuple[object, ...]]:
        """The rows that the select selects; without `given_members` the values are ranked first."""
        return self._connection.execute(self._sql[given_members]).fetchall()


_PAIRS: Final = "bit_count(seen & (seen >> 1))"
_FLIPS: Final = "bit_count(xor(slow, slow >> 1) & seen & (seen >> 1))"
_KEY: Final = "pop, prefix, prefix_length"


def _sql(select: Select, start_s: int, *, given_members: bool) -> str:
    step_s = select.step_us // 10**6
    share = (select.rank.share_ppm or 0) / 10**6
    span = f"window_start BETWEEN {start_s} AND {start_s + (select.windows - 1) * step_s}"
    bit = f"1::HUGEINT << ((window_start - {start_s}) // {step_s})::INTEGER"
    thresholds = f"""
    thresholds AS (
        SELECT pop, window_start, quantile_disc(value, {share}) AS threshold
        FROM windows WHERE {span} GROUP BY pop, window_start
    ),"""
    source = "windows" if given_members else "windows JOIN thresholds USING (pop, window_start)"
    member = "member = 1" if given_members else "value <= thresholds.threshold"
    duty, flap, least = select.min_duty_cycle, select.max_flap_rate, select.min_windows
    assert duty
    assert flap
    assert least
    return f"""
    WITH{"" if given_members else thresholds}
    masks AS (
        SELECT {_KEY}, bit_or({bit}) AS seen, coalesce(bit_or({bit}) FILTER ({member}), 0) AS slow
        FROM {source} WHERE {span} GROUP BY {_KEY}
    ),
    persistent AS (
        SELECT {_KEY}, bit_count(seen) AS seen, bit_count(slow) AS slow, {_FLIPS} AS flips, {_PAIRS} AS pairs
        FROM masks
        WHERE slow <> 0 AND bit_count(seen) >= {least.value}
            AND bit_count(slow) * 1000000 >= {duty.value * select.windows}
            AND {_FLIPS} * 1000000 <= {flap.value} * {_PAIRS}
    )
    SELECT {_KEY}, any_value(seen), any_value(slow), any_value(flips), any_value(pairs),
        quantile_disc(delivery_rate, 0.5) FILTER (delivery_rate > 0),
        min(min_rtt) FILTER (min_rtt > 0) AS nearest,
        sum(retransmitted_segments)::UBIGINT AS sent_again, sum(data_segments)::UBIGINT AS sent
    FROM windows JOIN persistent USING ({_KEY})
    WHERE {span}
    GROUP BY {_KEY}
    HAVING nearest >= {select.exclude[_MIN_RTT].value} AND sent > 0
        AND sent_again * 1000000 >= {select.exclude[_RETRANSMITS].value} * sent
    ORDER BY {_KEY}
    """
