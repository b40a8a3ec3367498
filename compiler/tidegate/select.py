"""Selection: which prefixes a select finds persistently slow, from closed windows, exactly.

Membership becomes two 128-bit masks a prefix (observed, member; bit 0 the oldest window), so that duty cycle
and flap rate are bit counts. No sketch is used: a sketch changes who is selected.
"""

import ipaddress
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tidegate_dsl.membership import judge
from tidegate_dsl.model import Condition, Select

from tidegate.metrics import ALWAYS, METRICS, PPM, columns, further
from tidegate.windows import US, lookback, view_of

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

_COMPARISON: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One prefix in one POP over a lookback: masks with bit 0 the oldest window, metrics with 0 for unknown."""

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
    further: tuple[tuple[str, int], ...] = field(default=(), kw_only=True)  # of `metrics.further`, by column

    def metric(self, name: str) -> int | None:
        """A metric of the language over the lookback, in its base unit, rounded down; None where it has no value."""
        exact = self.exact(name)
        return exact and exact[0] // exact[1]

    def exact(self, name: str) -> tuple[int, int] | None:
        """The same as a fraction that nothing was rounded for: what comparisons take."""
        parts = [self._column(column.name) for column in METRICS[name].columns]
        if METRICS[name].lower is None:
            return (parts[0], 1) if parts[0] else None
        return (parts[0] * PPM, parts[1]) if parts[1] else None

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
    members = _measure(client, select, mark, extra, "1", " AND ".join(_requirements(select)), {})
    return [m for m in members if excluded_by(select, m) is None]


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
    return _measure(client, select, mark, extra, where, "1", {"keys": keys})


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
        f" WHERE {_SPAN} AND pop = {{pop:String}} AND prefix = {{prefix:IPv6}} AND prefix_length = {{length:UInt8}}"
        " ORDER BY window_start",
        parameters=_span(select, mark, extra) | {"pop": pop, "prefix": address, "length": length},
    ).result_rows
    return [
        (datetime.fromtimestamp(start, UTC), samples, value, threshold, bool(member))
        for start, samples, value, threshold, member in rows
    ]


def observed_prefixes(
    client: "Client", select: Select, mark: datetime, extra: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Prefixes observed in at least one window of the lookback, by POP."""
    rows = client.query(
        "SELECT pop, uniqExact(prefix, prefix_length) FROM prefix_windows"
        f" WHERE {_SPAN} GROUP BY pop ORDER BY pop",
        parameters=_span(select, mark, extra),
    ).result_rows
    return {str(pop): int(count) for pop, count in rows}


_SPAN: Final = "view = {view:String} AND window_start BETWEEN {from:DateTime('UTC')} AND {to:DateTime('UTC')}"


def _span(select: Select, mark: datetime, extra: frozenset[str]) -> dict[str, Any]:
    starts = lookback(select, mark)
    return {
        "view": view_of(select, extra),
        "from": starts[0],
        "to": starts[-1],
        "start": int(starts[0].timestamp()),
    }


def _masks(select: Select) -> str:
    index = f"toUInt8(intDiv(toUnixTimestamp(window_start) - {{start:UInt32}}, {select.step_us // US}))"
    bit = f"bitShiftLeft(toUInt128(1), {index})"
    return f"groupBitOr({bit}) AS seen, groupBitOrIf({bit}, member = 1) AS slow"


_OWN: Final = 4  # seen, slow, flips, pairs
_COLUMNS: Final = columns(ALWAYS)  # in the order of Measurement's fields
_PAIRS: Final = "bitAnd(seen, bitShiftRight(seen, 1))"
_FLIPS: Final = f"bitCount(bitAnd(bitXor(slow, bitShiftRight(slow, 1)), {_PAIRS}))"


def _requirements(select: Select) -> list[str]:
    """Every `require` as SQL over the masks, compared as integers: no ratio is ever rounded."""
    requirements = ["slow != 0"]
    if select.min_windows:
        requirements.append(f"bitCount(seen) >= {select.min_windows.value}")
    if select.min_duty_cycle:
        requirements.append(f"bitCount(slow) * {PPM} >= {select.min_duty_cycle.value * select.windows}")
    if select.max_flap_rate:
        requirements.append(f"{_FLIPS} * {PPM} <= {select.max_flap_rate.value} * bitCount({_PAIRS})")
    return requirements


def meets(measured: Measurement, condition: Condition, *, selected: bool = False) -> bool:
    """Whether an exclude clause strikes, in whole numbers.

    What is unknown is excluded: a guess could harm a fast network.
    """
    exact = measured.exact(condition.metric)
    if exact is None:
        return True
    bound = condition.leave if selected and condition.leave is not None else condition.value
    return bool(_COMPARISON[condition.comparison](exact[0], bound * exact[1]))


def _measure(
    client: "Client",
    select: Select,
    mark: datetime,
    extra: frozenset[str],
    where: str,
    having: str,
    parameters: dict[str, Any],
) -> list[Measurement]:
    """One pass over the lookback, in the order of the table's key; only metrics that are asked for are read.

    Metrics are evaluated of what `having` leaves, and come column by column: most of the time of a large result is
    the making of Python objects.
    """
    asked = {select.metric, "min_rtt", "retransmit_ratio", *extra, *(c.metric for c in select.exclude)}
    read = columns(asked)
    beside = columns(further(select, extra))
    kept = (*_COLUMNS.values(), *beside.values())
    gathered = "".join(f", {column.gathered} AS g_{name}" for name, column in read.items())
    values = "".join(f", {column.lookback if column.name in read else '0'}" for column in kept)
    found = client.query(
        f"SELECT toString(pop), toString(prefix), prefix_length, seen, slow, {_FLIPS}, bitCount({_PAIRS}){values}"
        f" FROM (SELECT pop, prefix, prefix_length, {_masks(select)}{gathered}"
        f" FROM prefix_windows WHERE {_SPAN} AND {where} GROUP BY pop, prefix, prefix_length HAVING {having})"
        " ORDER BY pop, prefix, prefix_length SETTINGS optimize_aggregation_in_order = 1",
        parameters=_span(select, mark, extra) | parameters,
    ).result_columns
    end = _OWN + len(_COLUMNS)
    return [
        Measurement(
            pop,
            _text(address, length),
            select.windows,
            *values[:end],
            further=tuple(zip(beside, values[end:], strict=True)),
        )
        for pop, address, length, *values in zip(*found, strict=True)
    ]


def _text(address: str, length: int) -> str:
    """CIDR of a stored prefix, as `ipaddress` writes it: IPv4 stands mapped, 96 bits longer."""
    if "." not in address:
        return f"{address}/{length}"
    network = ipaddress.IPv6Address(address)
    mapped = network.ipv4_mapped
    return f"{mapped}/{length - 96}" if mapped is not None and length >= 96 else f"{network}/{length}"


def _mapped(prefix: str) -> tuple[str, int]:
    network = ipaddress.ip_network(prefix)
    if network.version == 4:
        return f"::ffff:{network.network_address}", network.prefixlen + 96
    return str(network.network_address), network.prefixlen
