"""Runs the tests of policy files: membership strings as they are, recordings one after the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidegate_dsl.model import Membership

from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, MISSING_PART
from tidegate.policytest.judge import Status, Tried, judge_membership
from tidegate.policytest.read import Tested
from tidegate.policytest.recorded import Recorded, judge_recorded

_EXIT_CODES: dict[Status, int] = {
    "failed": ANSWER_IS_NO,
    "unreadable": BAD_INPUT,
    "not run": MISSING_PART,
    "ok": 0,
}  # in the order of what is said first: a test that fails is an answer, whatever else is missing


@dataclass(frozen=True, slots=True)
class FileReport:
    """One policy file and its tests, in the order of the file."""

    tested: Tested
    tried: tuple[Tried, ...]


def run_tests(
    files: Iterable[Tested], *, name_contains: str = "", on_progress: Callable[[str], None]
) -> tuple[FileReport, ...]:
    """Run every test whose name contains a text.

    Args:
        files: as `read_tests` gives them; a policy with errors has no tests.
        name_contains: the text; empty: all.
        on_progress: is told what is being done.
    """
    tested = list(files)
    done: dict[tuple[int, str], Tried] = {}
    by_recording: dict[str, list[tuple[tuple[int, str], Recorded]]] = {}
    for number, file in enumerate(tested):
        for test in file.tests:
            if file.policy is None or name_contains not in test.name:
                continue
            key = number, test.name
            if isinstance(test.given, Membership):
                done[key] = judge_membership(file.policy, test, test.given)
            else:
                waiting = by_recording.setdefault(test.given.path, [])
                waiting.append((key, (file.policy, test, test.given)))
    for path, waiting in by_recording.items():
        tried = judge_recorded(path, [recorded for _, recorded in waiting], on_progress)
        done |= {key: each for (key, _), each in zip(waiting, tried, strict=True)}
    return tuple(
        FileReport(file, tuple(done[number, test.name] for test in file.tests if (number, test.name) in done))
        for number, file in enumerate(tested)
    )


def exit_code(reports: Iterable[FileReport], *, complete: bool) -> int:
    """What the command ends with: 1 when a test fails or a policy has errors, else what could not be run.

    Args:
        reports: of the policies that could be read.
        complete: no other policy was asked for.
    """
    found = list(reports)
    if any(report.tested.policy is None for report in found):
        return ANSWER_IS_NO
    statuses = {tried.status for report in found for tried in report.tried}
    if not complete:
        statuses.add("unreadable")
    return next((code for status, code in _EXIT_CODES.items() if status in statuses), 0)
