"""What came of policy tests, as lines of text and as JSON values."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from tidegate_dsl.model import Recording

from tidegate.judged import Judged, counted
from tidegate.policytest.coverage import SelectCoverage, share, share_in_words
from tidegate.policytest.judge import Finding, Status, Tried
from tidegate.policytest.run import FileReport
from tidegate.timeline import wrapped

_WIDTH: Final = 72  # marks of a membership in one line: six hours of five minutes
_WORDS: Final[dict[Status, str]] = {
    "ok": "passed",
    "failed": "failed",
    "unreadable": "with recordings that cannot be read",
    "not run": "not run",
}


def gist(tried: Tried) -> str:
    """One line: why a test did not pass."""
    if tried.failure is not None:
        return tried.failure.message
    return "; ".join(_surprise(finding) for finding in tried.findings if not finding.passed)


def detail(tried: Tried) -> Iterator[str]:
    """Why a test did not pass: the membership and each clause with what was found; nothing for one that passes."""
    if tried.failure is not None:
        yield tried.failure.message
        if tried.failure.help:
            yield f"help: {tried.failure.help}"
    for finding in tried.findings:
        if not finding.passed:
            yield f"line {finding.expectation.clause.line}: {finding.expectation.clause.text}"
            yield f"  {_surprise(finding)}"
            yield from (
                f"  {label:<11}{marks}"
                for label, marks in zip(
                    _labels("membership"), wrapped(finding.membership, _WIDTH), strict=False
                )
            )
            yield from (f"  {line}" for line in clause_lines(finding.clauses))


def clause_lines(clauses: tuple[Judged, ...]) -> list[str]:
    """Each clause, passed or failed, with what was found and the bound that counted."""
    width = max((len(each.clause.text) for each in clauses), default=0)
    return [
        f"{'pass' if each.passed else 'FAIL'}  {each.clause.text:<{width}}  {each.found}"
        + (f"; {each.bound} counts, it is selected already" if each.leaves else "")
        + f"  (line {each.clause.line})"
        for each in clauses
    ]


def summary(reports: Iterable[FileReport]) -> str:
    """`3 tests: 2 passed, 1 failed`."""
    statuses = [tried.status for report in reports for tried in report.tried]
    parts = [f"{statuses.count(status)} {words}" for status, words in _WORDS.items() if status in statuses]
    return f"{counted(len(statuses), 'test')}: {', '.join(parts)}"


def document(
    reports: Iterable[FileReport], covered: tuple[SelectCoverage, ...] | None, code: int
) -> dict[str, Any]:
    """The JSON form; `covered` None where nobody asked."""
    found: dict[str, Any] = {"ok": code == 0, "files": [_file(report) for report in reports]}
    if covered is not None:
        done, of = share(covered)
        found["coverage"] = {
            "covered": done,
            "clauses": of,
            "selects": [
                {
                    "path": each.path,
                    "select": each.select,
                    "clauses": [
                        {"clause": clause.what, "line": clause.clause.line, "tests": clause.tests}
                        for clause in each.clauses
                    ],
                }
                for each in covered
            ],
        }
    return found


def coverage_lines(covered: tuple[SelectCoverage, ...]) -> Iterator[str]:
    """A table a select: the clause, its line, and how many tests decide on it."""
    for each in covered:
        yield f"{each.path}: coverage of {each.select}"
        width = max(len(clause.what) for clause in each.clauses)
        for clause in each.clauses:
            tests = counted(clause.tests, "test") if clause.tests else "no test"
            yield f"  {clause.what:<{width}}  line {clause.clause.line:<5} {tests}"
    yield f"coverage: {share_in_words(covered)}"


def _labels(first: str) -> Iterator[str]:
    yield first
    while True:
        yield ""


def _surprise(finding: Finding) -> str:
    wanted = finding.expectation
    found = f"{wanted.select} {finding.verdict} {wanted.prefix} in {wanted.pop}"
    if finding.reasons:
        found += f" because of {' and '.join(finding.reasons)}"
    if finding.verdict == wanted.verdict:
        return f"{found}, not because of {wanted.because}"
    return found


def _file(report: FileReport) -> dict[str, Any]:
    tested = report.tested
    errors = (
        [d.to_json(tested.checked.source) for d in tested.checked.diagnostics]
        if tested.policy is None
        else []
    )
    return {
        "path": str(tested.path),
        "errors": errors,
        "tests": [_test(tried) for tried in report.tried],
    }


def _test(tried: Tried) -> dict[str, Any]:
    given, failure = tried.test.given, tried.failure
    return {
        "name": tried.test.name,
        "line": tried.test.clause.line,
        "result": tried.status,
        "recording": given.path if isinstance(given, Recording) else None,
        "failure": failure and {"message": failure.message, "help": failure.help},
        "expectations": [
            {
                "line": finding.expectation.clause.line,
                "expected": finding.expectation.clause.text,
                "passed": finding.passed,
                "verdict": finding.verdict,
                "reasons": list(finding.reasons),
                "membership": finding.membership,
                "clauses": [each.to_json() for each in finding.clauses],
            }
            for finding in tried.findings
        ],
    }
