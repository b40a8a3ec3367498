"""Which clauses of a select its tests decide on: a clause that no test needs can be lost without a test failing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate_dsl.model import Clause, Recording, Select
from tidegate_dsl.vocabulary import LEAVE

from tidegate.judged import RANK
from tidegate.policytest.judge import Finding, Tried
from tidegate.policytest.run import FileReport
from tidegate.values import percent

ADMITS = "admits"


@dataclass(frozen=True, slots=True)
class Covered:
    """One clause, and how many tests that pass decide on it.

    `require` and `exclude` count when a test expects an exclusion because of them, a `leave` bound when that
    test is of a prefix that is selected, and the select itself when a test expects an inclusion. What shapes
    the windows (`from`, `rank`, `require samples`) counts when a test on recorded telemetry names the select.
    """

    clause: Clause
    what: str
    tests: int


@dataclass(frozen=True, slots=True)
class SelectCoverage:
    """The clauses of one select."""

    path: str
    select: str
    clauses: tuple[Covered, ...]


def coverage(reports: Iterable[FileReport]) -> tuple[SelectCoverage, ...]:
    """Every select of every policy without errors, in the order of the files."""
    return tuple(
        SelectCoverage(
            str(report.tested.path),
            select.name,
            tuple(
                Covered(
                    clause, _words(clause, key, select), len({name for name, keys in decided if key in keys})
                )
                for key, clause in _clauses(select)
            ),
        )
        for report in reports
        if report.tested.policy
        for select in report.tested.policy.selects
        for decided in [_decided(select, report.tried)]
    )


def share(found: Iterable[SelectCoverage]) -> tuple[int, int]:
    """(clauses that some test decides on, all clauses)."""
    clauses = [clause for each in found for clause in each.clauses]
    return sum(clause.tests > 0 for clause in clauses), len(clauses)


def share_in_words(found: Iterable[SelectCoverage]) -> str:
    """`75.0% (6 of 8 clauses)`."""
    covered, of = share(found)
    return f"{percent(covered, of)} ({covered} of {of} clauses)"


Key = tuple[str, int, bool]  # reason, line, and whether it is the `leave` bound


def _clauses(select: Select) -> Iterator[tuple[Key, Clause]]:
    """What can be covered, in the order of selection."""
    yield (ADMITS, select.clause.line, False), select.clause
    shaping = [*(c.clause for c in select.where[:1]), select.rank.clause]
    shaping += [select.min_samples.clause] if select.min_samples else []
    for clause in shaping:
        yield (RANK, clause.line, False), clause
    for reason, bound in (
        ("windows", select.min_windows),
        ("duty_cycle", select.min_duty_cycle),
        ("flap_rate", select.max_flap_rate),
    ):
        if bound:
            yield (reason, bound.clause.line, False), bound.clause
            if bound.leave is not None:
                yield (reason, bound.clause.line, True), bound.clause
    for condition in select.exclude:
        yield (condition.metric, condition.clause.line, False), condition.clause


def _words(clause: Clause, key: Key, select: Select) -> str:
    reason, _, leave = key
    if reason == ADMITS:
        return f"{select.name} includes a prefix"
    enters, _, leaves = clause.text.partition(" leave ")
    return f"{reason} leave {leaves}" if leave else enters if reason in LEAVE else clause.text


def _decided(select: Select, tried: Iterable[Tried]) -> list[tuple[str, set[Key]]]:
    """(test, what it decides on) of each test of the select that passes."""
    return [
        (each.test.name, {key for finding in each.findings for key in _keys(select, each, finding)})
        for each in tried
        if each.status == "ok"
    ]


def _keys(select: Select, tried: Tried, finding: Finding) -> Iterator[Key]:
    wanted = finding.expectation
    if wanted.select != select.name:
        return
    if isinstance(tried.test.given, Recording):
        yield from (key for key, _ in _clauses(select) if key[0] == RANK)
    if wanted.verdict == "includes":
        yield ADMITS, select.clause.line, False
    for judged in finding.clauses:
        if judged.reason == wanted.because and not judged.passed:
            yield judged.reason, judged.clause.line, judged.leaves
