"""Selection: which prefixes a select finds persistently slow, from closed windows, exactly.

What is selected comes from the history of the lookback where `history` keeps one, else from its windows alone
(`measuring`): both give the same rows. Of prefixes whose values a history does not hold the windows are read.
"""

import ipaddress
import operator
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidegate_dsl.model import Condition, Select, judge

from tidegate.history import is_kept
from tidegate.measuring import (
    CIDR,
    FLIPS,
    IN_PARALLEL,
    PAIRS,
    SPAN,
    candidates,
    from_history,
    from_windows,
    requirements,
    span,
    without_values,
)
from tidegate.metrics import ALWAYS, METRICS, PPM, columns, window_columns

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

_COMPARISON: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Measurement(NamedTuple):
    """One prefix in one POP over a lookback: masks with bit 0 the oldest window, metrics with 0 for unknown.

    A tuple: a run makes many thousands, and a data class takes four times as long.
    """

    pop: str
    prefix: str
    lookback_windows: int
    observed: int
    member: int
    flips: int
    adjacent_pairs: int
    delivery_rate: int  # bits per second
    rtt: int  # microseconds
    cwnd: int  # segments
    min_rtt: int  # microseconds
    retransmitted_segments: int
    data_segments: int
    further: tuple[tuple[str, int], ...] = ()  # of `metrics.further`, by column

    def metric(self, name: str) -> int | None:
        """A metric of the language over the lookback, in its base unit, rounded down; None where it has no value."""
        exact = self.exact(name)
        return exact and exact[0] // exact[1]

    def exact(self, name: str) -> tuple[int, int] | None:
        """The same as a fraction that nothing was rounded for: what comparisons take."""
        return _exact(name, *(self._column(column.name) for column in METRICS[name].columns))

    def _column(self, name: str) -> int:
        return int(getattr(self, name)) if name in _COLUMNS else dict(self.further).get(name, 0)

    @property
    def windows(self) -> int:
        """Observed windows."""
        return self.observed.bit_count()

    @property
    def member_windows(self) -> int:
        """Windows in which the prefix was a member."""
        return self.member.bit_count()

    @property
    def timeline(self) -> str:
        """Membership by window, oldest first: `1` member, `0` observed, `.` not observed."""
        return "".join(
            "1" if self.member >> i & 1 else "0" if self.observed >> i & 1 else "."
            for i in range(self.lookback_windows)
        )


def qualifying(
    client: "Client", select: Select, mark: datetime, extra: frozenset[str] = frozenset()
) -> list[Measurement]:
    """What the select selects at `mark` of prefixes that are not selected yet, by POP, then prefix.

    Args:
        client: of a store whose windows are closed.
        select: what to look for.
        mark: the watermark.
        extra: as in `windows.close`; the measurements have these metrics too.
    """
    return _measure(client, select, mark, extra, "1", requirements(select), {}, select.exclude)


def stays(select: Select, measured: Measurement) -> bool:
    """Whether a prefix that is selected already still qualifies: the `leave` bounds count."""
    fulfils, _ = judge(select, measured.timeline, selected=True)
    return fulfils and excluded_by(select, measured, selected=True) is None


def excluded_by(select: Select, measured: Measurement, *, selected: bool = False) -> Condition | None:
    """The first exclude clause that a prefix meets; for one that is selected already the `leave` values count."""
    return next((c for c in select.exclude if meets(measured, c, selected=selected)), None)


def measure(
    client: "Client",
    select: Select,
    mark: datetime,
    prefixes: Sequence[tuple[str, str]],
    extra: frozenset[str] = frozenset(),
) -> list[Measurement]:
    """The measurements of given (POP, prefix), whether or not they qualify; unobserved ones are missing.

    Args:
        client: of a store whose windows are closed.
        select: what is measured.
        mark: the watermark.
        prefixes: of whom.
        extra: as in `windows.close`; the measurements have these metrics too.
    """
    if not prefixes:
        return []
    keys = [(pop, *_mapped(prefix)) for pop, prefix in prefixes]
    where = "(pop, prefix, prefix_length) IN {keys:Array(Tuple(String, IPv6, UInt8))}"
    return _measure(client, select, mark, extra, where, "1", {"keys": keys}, ())


def window_values(
    client: "Client",
    select: Select,
    mark: datetime,
    pop: str,
    prefix: str,
    extra: frozenset[str] = frozenset(),
) -> list[tuple[datetime, int, int, int, bool]]:
    """(start, samples, value, threshold, member) of each observed window of one prefix, oldest first."""
    address, length = _mapped(prefix)
    rows = client.query(
        "SELECT toUnixTimestamp(window_start), samples, value, threshold, member FROM prefix_windows"
        f" WHERE {SPAN} AND pop = {{pop:String}} AND prefix = {{prefix:IPv6}} AND prefix_length = {{length:UInt8}}"
        " ORDER BY window_start",
        parameters=span(select, mark, extra) | {"pop": pop, "prefix": address, "length": length},
    ).result_rows
    return [
        (datetime.fromtimestamp(start, UTC), samples, value, threshold, bool(member))
        for start, samples, value, threshold, member in rows
    ]


def observed_prefixes(
    client: "Client", select: Select, mark: datetime, extra: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Prefixes observed in at least one window of the lookback, by POP."""
    spanned = span(select, mark, extra)
    prefixes = f"(SELECT DISTINCT pop, prefix, prefix_length FROM prefix_windows WHERE {SPAN})"
    if is_kept(client, spanned["view"], spanned["to"]):
        prefixes = f"({candidates(select, '1', '1')})"
    rows = client.query(
        f"SELECT pop, count() FROM {prefixes} GROUP BY pop ORDER BY pop", parameters=spanned
    ).result_rows
    return {str(pop): int(count) for pop, count in rows}


_OWN: Final = 4  # seen, slow, flips, pairs
_MEASURED: Final = 3 + _OWN  # of a query's columns, the first that is a metric's
_COLUMNS: Final = columns(ALWAYS)  # in the order of Measurement's fields


def meets(measured: Measurement, condition: Condition, *, selected: bool = False) -> bool:
    """Whether an exclude clause strikes, in whole numbers.

    What is unknown is excluded: a guess could harm a fast network.
    """
    bound = condition.leave if selected and condition.leave is not None else condition.value
    return _strikes(condition, bound, measured.exact(condition.metric))


def _strikes(condition: Condition, bound: int, exact: tuple[int, int] | None) -> bool:
    return exact is None or bool(_COMPARISON[condition.comparison](exact[0], bound * exact[1]))


def _exact(metric: str, upper: int, lower: int = 1) -> tuple[int, int] | None:
    """A metric of the value of its column, or of its two."""
    if METRICS[metric].lower is None:
        return (upper, 1) if upper else None
    return (upper * PPM, lower) if lower else None


def _measure(
    client: "Client",
    select: Select,
    mark: datetime,
    extra: frozenset[str],
    where: str,
    having: str,
    parameters: dict[str, Any],
    excluded: Sequence[Condition],
) -> list[Measurement]:
    """From the history where it is kept, else from the windows: the same rows.

    Metrics are evaluated of what `having` leaves, and come column by column: most of the time of a large result is
    the making of Python objects, so these are made last.
    """
    read = columns(
        {select.metric, "min_rtt", "retransmit_ratio", *extra, *(c.metric for c in select.exclude)}
    )
    kept = window_columns(select, extra)
    values = "".join(f", {column.lookback if name in read else '0'}" for name, column in kept.items())
    spanned = span(select, mark, extra)

    def rows(source: str, settings: str = "") -> Sequence[Sequence[Any]]:
        asked = client.query(
            f"SELECT whole, toString(pop), {CIDR}, seen, slow, {FLIPS}, {PAIRS}{values} FROM ({source})"
            f" ORDER BY pop, prefix, prefix_length{settings}",
            parameters=spanned | parameters,
        )
        return list(asked.result_columns)

    found = None
    if is_kept(client, spanned["view"], spanned["to"]):
        found = rows(from_history(select, read, where, having), IN_PARALLEL)
        if found and not all(found[0]):
            without = without_values(select, where, having)
            found = _filled(found, rows(from_windows(select, read, f"{where} AND {without}", having)))
    if found is None:
        found = rows(from_windows(select, read, where, having))
    return list(_made(select, found[1:], list(kept), excluded)) if found else []


def _filled(
    found: Sequence[Sequence[Any]], measured: Sequence[Sequence[Any]]
) -> Sequence[Sequence[Any]] | None:
    """The rows, with those that lack their values replaced; None where the windows have not the same ones."""
    lacking = [row for row, whole in enumerate(found[0]) if not whole]
    filled = [list(column) for column in found]
    for column, replaced in zip(filled, measured, strict=False):
        for row, value in zip(lacking, replaced, strict=False):
            column[row] = value
    same = slice(1, _MEASURED)
    return filled if all(filled[0]) and filled[same] == [list(column) for column in found[same]] else None


def _made(
    select: Select, found: Sequence[Sequence[Any]], kept: Sequence[str], excluded: Sequence[Condition]
) -> Iterator[Measurement]:
    """Measurements of columns: POPs, prefixes, masks, flips and pairs, then those named by `kept`."""
    pops, prefixes, *values = found
    named = dict(zip(kept, values[_OWN:], strict=True))
    beside = kept[len(_COLUMNS) :]
    more = (
        [tuple(zip(beside, each, strict=True)) for each in zip(*(named[n] for n in beside), strict=True)]
        if beside
        else repeat(())
    )
    rows = zip(
        pops,
        [_canonical(prefix) if "." in prefix and ":" in prefix else prefix for prefix in prefixes],
        repeat(select.windows),
        *values[: _OWN + len(_COLUMNS)],
        more,
        strict=False,
    )
    struck = map(any, zip(*(_struck(c, named) for c in excluded), strict=True)) if excluded else repeat(False)
    return map(Measurement._make, (row for row, out in zip(rows, struck, strict=False) if not out))


def _struck(condition: Condition, named: Mapping[str, Sequence[int]]) -> list[bool]:
    """Of each row, whether an exclude clause strikes: `meets` of columns, which takes a fifth of its time."""
    strikes, bound = _COMPARISON[condition.comparison], condition.value
    upper, *lower = (named[column.name] for column in METRICS[condition.metric].columns)
    if lower:
        return [
            not below or strikes(above * PPM, bound * below)
            for above, below in zip(upper, *lower, strict=True)
        ]
    return [not value or strikes(value, bound) for value in upper]


def _canonical(prefix: str) -> str:
    """A prefix of IPv6 as `ipaddress` writes it: ClickHouse writes `::102:304` as `::1.2.3.4`."""
    return str(ipaddress.IPv6Interface(prefix))


def _mapped(prefix: str) -> tuple[str, int]:
    network = ipaddress.ip_network(prefix)
    if network.version == 4:
        return f"::ffff:{network.network_address}", network.prefixlen + 96
    return str(network.network_address), network.prefixlen
