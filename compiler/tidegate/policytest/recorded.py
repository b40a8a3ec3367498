"""Tests on recorded telemetry: each recording is loaded into a store of its own, in memory, and selected from."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate_dsl.model import Policy, PolicyTest, Recording

from tidegate.errors import Failure
from tidegate.policytest.judge import Tried, judge_measured
from tidegate.select import measure
from tidegate.watermarks import complete_to, last_samples
from tidegate.windows import close

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

_END_OF_TIME: Final = datetime(2106, 1, 1, tzinfo=UTC)  # of ClickHouse's DateTime

Recorded = tuple[Policy, PolicyTest, Recording]


def judge_recorded(path: str, tests: Iterable[Recorded], on_progress: Callable[[str], None]) -> list[Tried]:
    """Load one recording and judge all tests on it.

    The embedded engine keeps a memory store until its last client is closed, so the next one begins empty.

    Args:
        path: the recording.
        tests: those that are given it.
        on_progress: is told what is being done.
    """
    recorded = list(tests)
    try:
        from tidegate.telemetry.dsn import MEMORY  # noqa: PLC0415 - a policy author has no store installed
        from tidegate.telemetry.ingest import ingest_file  # noqa: PLC0415
        from tidegate.telemetry.migrate import migrate  # noqa: PLC0415
        from tidegate.telemetry.store import open_store  # noqa: PLC0415

        on_progress(f"loading {path}")
        with open_store(MEMORY) as client:
            migrate(client)
            ingest_file(client, Path(path))
            on_progress(f"selecting from {path}")
            return [_judge(client, policy, test, given) for policy, test, given in recorded]
    except Failure as failure:
        return [Tried(test, (), _placed(policy, test, failure)) for policy, test, _ in recorded]


def _judge(client: "Client", policy: Policy, test: PolicyTest, given: Recording) -> Tried:
    mark = _watermark(client, policy, given.until or _END_OF_TIME)
    if mark is None:
        before = f" before {given.until:%Y-%m-%dT%H:%MZ}" if given.until else ""
        nothing = Failure(
            f"{given.path}: there are no samples in it{before}",
            help="name another recording, or a later `until`",
        )
        return Tried(test, (), _placed(policy, test, nothing))
    selects = {select.name: select for select in policy.selects}
    findings = []
    for wanted in test.expect:
        select = selects[wanted.select]
        close(client, select, mark)
        found = measure(client, select, mark, [(wanted.pop, wanted.prefix)])
        findings.append(judge_measured(select, wanted, found[0] if found else None))
    return Tried(test, tuple(findings))


def _watermark(client: "Client", policy: Policy, until: datetime) -> datetime | None:
    """The latest moment up to which every select's windows are whole, as a plan has it; None without samples."""
    last = max(last_samples(client, until).values(), default=None)
    if last is None:
        return None
    return min(complete_to(last, until, timedelta(0), select.step_us) for select in policy.selects)


def _placed(policy: Policy, test: PolicyTest, failure: Failure) -> Failure:
    """The failure, with the test that met it."""
    return Failure(
        f"{policy.path}:{test.clause.line}: {failure.message}", help=failure.help, exit_code=failure.exit_code
    )
