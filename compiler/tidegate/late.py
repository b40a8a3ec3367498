"""Late samples: those that came for a window of a POP after it was closed.

They are counted, and used only once the window is reopened.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tidegate.errors import BAD_INPUT, Failure
from tidegate.times import format_time

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

# `rows` were there when a window was closed; what is there now is counted again. A row of closed_windows that has no
# POP is of a version that did not count.
_CLOSED: Final = """
SELECT toString(view), toString(pop), toUnixTimestamp(window_start), toUnixTimestamp(latest), stored, found
FROM (
    SELECT view, pop, window_start, argMax(rows, closed_at) AS stored, max(closed_at) AS latest
    FROM closed_windows
    WHERE pop != '' AND step_s = {step_s:UInt32}
        AND ({view:String} = '' OR view = {view:String}) AND ({pop:String} = '' OR pop = {pop:String})
        AND toUnixTimestamp(window_start) BETWEEN {first:UInt32} AND {last:UInt32}
    GROUP BY view, pop, window_start
) AS closed LEFT JOIN (
    WITH intDiv(toUnixTimestamp64Nano(observed_at), {step_s:UInt32} * 1000000000) AS number
    SELECT pop, toDateTime(number * {step_s:UInt32}, 'UTC') AS window_start, count() AS found
    FROM socket_samples
    WHERE observed_at >= fromUnixTimestamp64Nano(toInt64({first:UInt32}) * 1000000000, 'UTC')
        AND observed_at < fromUnixTimestamp64Nano(toInt64({last:UInt32} + {step_s:UInt32}) * 1000000000, 'UTC')
    GROUP BY pop, window_start
) AS present USING (pop, window_start)
ORDER BY pop, window_start, view
"""
_STEPS: Final = """
SELECT DISTINCT step_s FROM closed_windows
WHERE pop != '' AND ({view:String} = '' OR view = {view:String}) AND ({pop:String} = '' OR pop = {pop:String})
ORDER BY step_s
"""
_REOPEN: Final = """
DELETE FROM closed_windows
WHERE pop = {pop:String} AND window_start >= {from:DateTime('UTC')} AND window_start < {until:DateTime('UTC')}
"""


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """One window of one POP, as it was closed.

    Attributes:
        view: the windows' name, of `windows.view_of`.
        pop: whose.
        start: of the window.
        step_s: its length in seconds.
        closed_at: when, by the store's clock.
        rows: samples of the POP in it when it was closed, of all traffic.
        present: samples in it now.
    """

    view: str
    pop: str
    start: datetime
    step_s: int
    closed_at: datetime
    rows: int
    present: int

    @property
    def late(self) -> int:
        """Samples that came after it was closed."""
        return max(0, self.present - self.rows)

    @property
    def forgotten(self) -> int:
        """Samples that it was closed with and that the store holds no more."""
        return max(0, self.rows - self.present)


def closed_between(
    client: "Client", view: str, step_us: int, first: datetime, last: datetime
) -> list[ClosedWindow]:
    """A view's closed windows that start from `first` to `last`, by POP, then time."""
    return _closed(client, {"view": view, "pop": ""}, step_us // 1_000_000, first, last)


def closed_of(client: "Client", pop: str | None, first: datetime, until: datetime) -> list[ClosedWindow]:
    """The closed windows of every view that start in [first, until), of one POP or of all, shortest steps first."""
    whose = {"view": "", "pop": pop or ""}
    steps = client.query(_STEPS, parameters=whose).result_rows
    found = (_closed(client, whose, int(step), first, until) for (step,) in steps)
    return [window for windows in found for window in windows if window.start < until]


def reopen(client: "Client", pop: str, first: datetime, until: datetime) -> list[ClosedWindow]:
    """Have the next plan close a POP's windows that start in [first, until) again, with all that has come since.

    They stay as they are until then: a window counts as closed once it is entered as such, and that entry is removed.

    Returns:
        Those that were reopened.

    Raises:
        Failure: there are none, or some of the samples that one was made of are not in the store any more.
    """
    found = closed_of(client, pop, first, until)
    span = f"of {pop} from {format_time(first)} until {format_time(until)}"
    if not found:
        raise Failure(
            f"no window {span} is closed",
            help="`tidegate windows show` lists those that can be reopened",
            exit_code=BAD_INPUT,
        )
    if lost := [window for window in found if window.forgotten]:
        raise Failure(
            f"{len(lost)} of {len(found)} windows {span} would lose samples that they were closed with: the first,"
            f" {format_time(lost[0].start)}, was made of {lost[0].rows}, and {lost[0].present} are in the store",
            help="name a later time with `--from`: the store forgets raw telemetry three days after it came",
            exit_code=BAD_INPUT,
        )
    client.command(_REOPEN, parameters={"pop": pop, "from": first, "until": until})
    return found


def late_only(windows: Collection[ClosedWindow]) -> list[ClosedWindow]:
    """Those that samples came late for."""
    return [window for window in windows if window.late]


def _closed(
    client: "Client", whose: dict[str, str], step_s: int, first: datetime, last: datetime
) -> list[ClosedWindow]:
    bounds = {"step_s": step_s, "first": int(first.timestamp()), "last": int(last.timestamp())}
    return [
        ClosedWindow(
            view,
            pop,
            datetime.fromtimestamp(start, UTC),
            step_s,
            datetime.fromtimestamp(closed_at, UTC),
            int(rows),
            int(present),
        )
        for view, pop, start, closed_at, rows, present in client.query(
            _CLOSED, parameters=whose | bounds
        ).result_rows
    ]
