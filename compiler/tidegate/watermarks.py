"""Watermarks: how far the telemetry of each POP, and of the fleet, is complete.

Of a POP it is the end of the last window that its newest sample reaches, not before the grace for late samples is
over. The fleet's is the lowest of those POPs that do not lag: one whose collectors died must not hold up the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidegate_dsl.model import Policy
from tidegate_dsl.vocabulary import spell

from tidegate.errors import BAD_INPUT, Failure
from tidegate.times import format_time

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

_US: Final = 1_000_000
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Watermarks:
    """How far telemetry is complete.

    Attributes:
        fleet: the end of the last window that every POP has which does not lag; what a run decides at.
        pops: by POP of the fleet, its own; None where there is no telemetry of it.
        newest: the latest of `pops`; what a lag is counted from.
        lagging: the reason, by POP, of those that are left as they are.
    """

    fleet: datetime
    pops: Mapping[str, datetime | None]
    newest: datetime
    lagging: Mapping[str, str]

    @property
    def complete(self) -> list[str]:
        """POPs that do not lag: their windows up to `fleet` can be closed."""
        return [pop for pop in self.pops if pop not in self.lagging]

    def lag_s(self, pop: str) -> int | None:
        """Seconds that a POP stands behind the newest; None where there is no telemetry of it."""
        mark = self.pops[pop]
        return None if mark is None else int((self.newest - mark).total_seconds())


def watermarks(
    client: "Client",
    policy: Policy,
    *,
    as_of: datetime,
    grace: timedelta,
    max_lag: timedelta,
    applied: datetime | None,
) -> Watermarks:
    """The watermarks of a policy's fleet, by what arrived.

    Args:
        client: of an open and migrated store.
        policy: whose selects and fleet; without selects no telemetry is needed.
        as_of: samples before count.
        grace: how long after its end a window's samples may come.
        max_lag: how far a POP may stand behind the newest before it lags.
        applied: the watermark of the applied plan. A POP that comes back lags until it has reached it, so that the
            fleet's watermark does not go back.

    Raises:
        Failure: there are no samples of this fleet before `as_of`.
    """
    names = [pop.name for pop in policy.fleet.pops]
    if not policy.selects:
        return Watermarks(as_of, dict.fromkeys(names, as_of), as_of, {})
    last = last_samples(client, as_of)
    steps = {select.step_us for select in policy.selects}
    marks = {
        name: min(complete_to(last[name], as_of, grace, step) for step in steps) if name in last else None
        for name in names
    }
    known = [mark for mark in marks.values() if mark is not None]
    if not known:
        raise Failure(
            f"there is no telemetry to plan from before {as_of:%Y-%m-%dT%H:%M:%SZ}",
            help="load some with `tidegate ingest FILE`, or give the telemetry's time with `--as-of`",
            exit_code=BAD_INPUT,
        )
    newest = max(known)
    least = newest - max_lag
    if applied is not None and applied <= newest:
        least = max(least, applied)
    lagging = {
        name: _reason(name, mark, newest) for name, mark in marks.items() if mark is None or mark < least
    }
    return Watermarks(min(mark for mark in known if mark >= least), marks, newest, lagging)


def last_samples(client: "Client", as_of: datetime) -> dict[str, datetime]:
    """The time of the last sample before a moment, in whole seconds, by POP."""
    rows = client.query(
        "SELECT toString(pop), max(toUnixTimestamp64Nano(observed_at)) FROM socket_samples"
        " WHERE observed_at < fromUnixTimestamp64Nano({as_of:Int64}, 'UTC') GROUP BY pop",
        parameters={"as_of": int(as_of.timestamp()) * _NS + as_of.microsecond * 1000},
    ).result_rows
    return {str(pop): datetime.fromtimestamp(last // _NS, UTC) for pop, last in rows}


def complete_to(last: datetime, as_of: datetime, grace: timedelta, step_us: int) -> datetime:
    """End of the last window that can be closed, when the last sample is of `last`."""
    return min(floor_to(as_of - grace, step_us), floor_to(last, step_us) + timedelta(microseconds=step_us))


def floor_to(moment: datetime, step_us: int) -> datetime:
    """The latest step boundary at or before `moment`."""
    step_s = step_us // _US
    return datetime.fromtimestamp(int(moment.timestamp()) // step_s * step_s, UTC)


def _reason(pop: str, mark: datetime | None, newest: datetime) -> str:
    if mark is None:
        return f"there is no telemetry of {pop}"
    lag_us = int((newest - mark).total_seconds()) * _US
    return (
        f"the telemetry of {pop} ends at {format_time(mark)}, {spell(lag_us, 'duration')} behind the fleet's"
    )
