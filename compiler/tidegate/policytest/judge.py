"""One test: what each of its selects says, and whether that is what the policy's author expects."""

from dataclasses import dataclass
from typing import Literal

from tidegate_dsl.model import Expectation, Membership, Policy, PolicyTest, Select

from tidegate.errors import BAD_INPUT, Failure
from tidegate.judged import Judged, judged, misses
from tidegate.select import Measurement

Status = Literal["ok", "failed", "unreadable", "not run"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a select says of the prefix of one expectation.

    Attributes:
        expectation: what was expected.
        membership: one character a window of the lookback, oldest first.
        reasons: everything that the prefix misses; nothing: it is included.
        clauses: each clause that decides; `exclude` only on recorded telemetry.
    """

    expectation: Expectation
    membership: str
    reasons: tuple[str, ...]
    clauses: tuple[Judged, ...]

    @property
    def verdict(self) -> Literal["includes", "excludes"]:
        """What the select says."""
        return "excludes" if self.reasons else "includes"

    @property
    def passed(self) -> bool:
        """Whether that was expected, and for the reason that is named."""
        wanted = self.expectation
        return self.verdict == wanted.verdict and (wanted.because is None or wanted.because in self.reasons)


@dataclass(frozen=True, slots=True)
class Tried:
    """One test and what came of it.

    `failure` says why it could not be run: the recording can not be read, or what reads it is not installed.
    """

    test: PolicyTest
    findings: tuple[Finding, ...]
    failure: Failure | None = None

    @property
    def status(self) -> Status:
        """`unreadable` and `not run` tell the two failures apart by their exit code."""
        if self.failure is not None:
            return "unreadable" if self.failure.exit_code == BAD_INPUT else "not run"
        return "ok" if all(finding.passed for finding in self.findings) else "failed"


def judge_membership(policy: Policy, test: PolicyTest, given: Membership) -> Tried:
    """A test on a membership string."""
    selects = {select.name: select for select in policy.selects}
    return Tried(
        test,
        tuple(
            _finding(selects[wanted.select], wanted, given.windows, None, selected=given.selected)
            for wanted in test.expect
        ),
    )


def judge_measured(select: Select, wanted: Expectation, found: Measurement | None) -> Finding:
    """An expectation about recorded telemetry; None: the prefix was not observed in the lookback."""
    membership = found.timeline if found else "." * select.windows
    return _finding(select, wanted, membership, found, selected=False)


def _finding(
    select: Select, wanted: Expectation, membership: str, found: Measurement | None, *, selected: bool
) -> Finding:
    return Finding(
        wanted,
        membership,
        tuple(misses(select, membership, found, selected=selected)),
        judged(select, membership, found, selected=selected),
    )
