"""One run, in the order the data flows: close windows, select, decide, judge, plan."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidegate_dsl.model import Policy, Select

from tidegate.contracts import sha256_digest
from tidegate.decide import decide
from tidegate.decisions import Decision, Evidence
from tidegate.errors import BAD_INPUT, Failure
from tidegate.fleet import fleet_document
from tidegate.history import keep
from tidegate.metrics import watched
from tidegate.plan import Plan, build
from tidegate.select import measure, observed_prefixes, qualifying
from tidegate.windows import close, lookback, view_of, watermark

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
    created_at: datetime,
    progress: Progress,
) -> Plan:
    """From closed windows and the last applied plan to a new plan; the telemetry's windows are closed on the way.

    Raises:
        Failure: there is no telemetry before `as_of`.
    """
    mark = common_watermark(client, policy, as_of, grace)
    before = previous.decisions() if previous else []
    evidence: dict[str, Evidence] = {}
    observed: dict[str, int] = {}
    for select in policy.selects:
        extra = watched(policy, select)
        progress(f"closing windows of {select.name}")
        close(client, select, mark, extra)
        keep(client, view_of(select, extra), lookback(select, mark)[-1], select.step_us)
        progress(f"selecting {select.name}")
        selected = _selected(policy, select, before)
        evidence[select.name] = Evidence(
            tuple(qualifying(client, select, mark, extra)),
            tuple(measure(client, select, mark, selected, extra)),
        )
        for pop, count in observed_prefixes(client, select, mark, extra).items():
            observed[pop] = max(observed.get(pop, 0), count)
    progress("deciding")
    outcome = decide(policy, evidence, before, mark, previous.guards() if previous else ())
    return build(
        policy,
        outcome,
        observed,
        previous,
        fleet_digest=sha256_digest(fleet_document(policy.fleet)),
        as_of=as_of,
        created_at=created_at,
        watermark=mark,
    )


def common_watermark(client: "Client", policy: Policy, as_of: datetime, grace: timedelta) -> datetime:
    """The latest moment up to which every select's windows can be closed.

    Raises:
        Failure: there are no samples before `as_of`.
    """
    if not policy.selects:
        return as_of
    marks = [watermark(client, as_of, grace, select.step_us) for select in policy.selects]
    known = [mark for mark in marks if mark is not None]
    if not known:
        raise Failure(
            f"there is no telemetry to plan from before {as_of:%Y-%m-%dT%H:%M:%SZ}",
            help="load some with `tidegate ingest FILE`, or give the telemetry's time with `--as-of`",
            exit_code=BAD_INPUT,
        )
    return min(known)


def _selected(policy: Policy, select: Select, before: list[Decision]) -> list[tuple[str, str]]:
    """Whose measurements decide beside those that qualify: what the select's rules have, under a former name too."""
    rules = {rule.name for rule in policy.applies if rule.select == select.name}
    return [(d.pop, d.prefix) for d in before if d.rule in rules or d.select == select.name]
