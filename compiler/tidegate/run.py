"""One run, in the order the data flows: watermarks, close windows, select, decide, judge, plan."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidegate_dsl.model import Policy, Select

from tidegate.contracts import sha256_digest
from tidegate.decide import decide
from tidegate.decisions import Decision, Evidence
from tidegate.fleet import fleet_document
from tidegate.history import keep
from tidegate.late import ClosedWindow, closed_between, late_only
from tidegate.metrics import watched, window_columns
from tidegate.plan import Plan, build
from tidegate.plan_telemetry import state_of_telemetry
from tidegate.select import measure, observed_prefixes, qualifying
from tidegate.watermarks import watermarks
from tidegate.windows import close, lookback, view_of

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

Progress = Callable[[str], None]


def make_plan(
    client: "Client",
    policy: Policy,
    previous: Plan | None,
    *,
    as_of: datetime,
    grace: timedelta,
    max_lag: timedelta,
    created_at: datetime,
    progress: Progress,
) -> Plan:
    """From closed windows and the last applied plan to a new plan; the telemetry's windows are closed on the way.

    A POP whose telemetry lags keeps the decisions of the last applied plan, and closes no windows until it is back.

    Args:
        client: of an open and migrated store.
        policy: what decides.
        previous: the applied plan.
        as_of: telemetry before this moment counts.
        grace: how long after its end a window's samples may come.
        max_lag: how far a POP may stand behind the others.
        created_at: when the plan is made.
        progress: is told what is being done.

    Raises:
        Failure: there is no telemetry before `as_of`.
    """
    marks = watermarks(
        client,
        policy,
        as_of=as_of,
        grace=grace,
        max_lag=max_lag,
        applied=previous.watermark if previous else None,
    )
    mark = marks.fleet
    before = previous.decisions() if previous else []
    evidence: dict[str, Evidence] = {}
    observed: dict[str, int] = {}
    late: dict[str, list[ClosedWindow]] = {}
    for select in policy.selects:
        extra = watched(policy, select)
        progress(f"closing windows of {select.name}")
        view, starts = view_of(select, extra), lookback(select, mark)
        close(client, select, mark, extra, marks.complete)
        keep(client, view, starts[-1], select.step_us, window_columns(select, extra))
        late[select.name] = late_only(closed_between(client, view, select.step_us, starts[0], starts[-1]))
        progress(f"selecting {select.name}")
        selected = _selected(policy, select, before)
        evidence[select.name] = Evidence(
            tuple(qualifying(client, select, mark, extra)),
            tuple(measure(client, select, mark, selected, extra)),
        )
        for pop, count in observed_prefixes(client, select, mark, extra).items():
            observed[pop] = max(observed.get(pop, 0), count)
    progress("deciding")
    outcome = decide(policy, evidence, before, mark, previous.guards() if previous else (), marks.lagging)
    return build(
        policy,
        outcome,
        observed,
        previous,
        fleet_digest=sha256_digest(fleet_document(policy.fleet)),
        as_of=as_of,
        created_at=created_at,
        watermark=mark,
        telemetry=state_of_telemetry(marks, late),
    )


def _selected(policy: Policy, select: Select, before: list[Decision]) -> list[tuple[str, str]]:
    """Whose measurements decide beside those that qualify: what the select's rules have, under a former name too."""
    rules = {rule.name for rule in policy.applies if rule.select == select.name}
    return [(d.pop, d.prefix) for d in before if d.rule in rules or d.select == select.name]
