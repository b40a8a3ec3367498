"""The same selection in Polars: lazy, columns in memory and in order, so that a shift finds a prefix's pairs."""

from typing import Final

import polars as pl
import pyarrow as pa
from tidegate_dsl.model import Select

_MIN_RTT, _RETRANSMITS = 0, 1  # the grid's two exclude clauses, in the order of the file
_KEY: Final = ("pop", "prefix", "prefix_length")
_PPM: Final = 1_000_000


class Polars:
    """Closed windows as columns, names as categories: of text the same takes twice as long."""

    def __init__(self, windows: pa.Table, select: Select, start_s: int) -> None:
        frame = pl.from_arrow(windows)
        assert isinstance(frame, pl.DataFrame)
        self._frame = frame.with_columns(pl.col("pop", "prefix").cast(pl.Categorical))
        self._select, self._start_s = select, start_s

    def select(self, *, given_members: bool) -> list[tuple[object, ...]]:
        """The rows that the select selects; without `given_members` the values are ranked first."""
        query = _query(self._frame.lazy(), self._select, self._start_s, given_members=given_members)
        return query.collect(engine="streaming").rows()


def _query(frame: pl.LazyFrame, select: Select, start_s: int, *, given_members: bool) -> pl.LazyFrame:
    step_s = select.step_us // 10**6
    duty, flap, least = select.min_duty_cycle, select.max_flap_rate, select.min_windows
    assert duty
    assert flap
    assert least
    start = pl.col("window_start")
    windows = frame.filter(start.is_between(start_s, start_s + (select.windows - 1) * step_s))
    ranked = windows
    if not given_members:
        share = (select.rank.share_ppm or 0) / _PPM
        thresholds = windows.group_by("pop", "window_start").agg(
            limit=pl.col("value").quantile(share, "lower")
        )
        ranked = windows.join(thresholds, on=("pop", "window_start"), maintain_order="left")
    member = pl.col("member") == 1 if given_members else pl.col("value") <= pl.col("limit")
    adjacent = start - start.shift() == step_s
    for name in _KEY:
        adjacent &= pl.col(name) == pl.col(name).shift()
    persistent = (
        ranked.with_columns(slow=member, pair=adjacent)
        .with_columns(flip=pl.col("pair") & (pl.col("slow") != pl.col("slow").shift()))
        .group_by(_KEY)
        .agg(pl.len().alias("seen"), *(pl.col(name).sum() for name in ("slow", "flip", "pair")))
        .filter(
            pl.col("slow") > 0,
            pl.col("seen") >= least.value,
            pl.col("slow").cast(pl.Int64) * _PPM >= duty.value * select.windows,
            pl.col("flip").cast(pl.Int64) * _PPM <= flap.value * pl.col("pair").cast(pl.Int64),
        )
    )
    rate, rtt = pl.col("delivery_rate"), pl.col("min_rtt")
    measured = (
        windows.join(persistent, on=_KEY, how="semi")
        .group_by(_KEY)
        .agg(
            rate.filter(rate > 0).quantile(0.5, "lower").cast(pl.UInt64),
            rtt.filter(rtt > 0).min(),
            pl.col("retransmitted_segments", "data_segments").sum(),
        )
    )
    sent = pl.col("data_segments")
    return (
        persistent.join(measured, on=_KEY)
        .filter(
            rtt >= select.exclude[_MIN_RTT].value,
            sent > 0,
            pl.col("retransmitted_segments") * _PPM >= select.exclude[_RETRANSMITS].value * sent,
        )
        .select(*_KEY, "seen", "slow", "flip", "pair", rate, rtt, "retransmitted_segments", sent)
        .sort(pl.col("pop", "prefix").cast(pl.String), "prefix_length")
    )
