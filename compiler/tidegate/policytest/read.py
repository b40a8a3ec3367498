"""A policy's tests, those that fail included: the checker reports them as errors, and gives no policy then."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate_dsl import CheckResult, check_file, read_limits
from tidegate_dsl.check import Scope, check_policy, check_test
from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.model import Policy, PolicyTest
from tidegate_dsl.syntax import parse_policy

TEST_FAILS: Final = "X101"


@dataclass(frozen=True, slots=True)
class Tested:
    """A policy file and its tests.

    Attributes:
        path: the file.
        checked: what the checker said of it.
        policy: None where it has other errors than tests that fail; then there are no tests.
        tests: in the order of the file.
    """

    path: Path
    checked: CheckResult
    policy: Policy | None
    tests: tuple[PolicyTest, ...]


def read_tests(path: Path, limits: Path) -> Tested:
    """Check a policy file and read its tests.

    Args:
        path: the policy.
        limits: the limits file.

    Raises:
        InputError: the policy or the limits can not be read.
    """
    checked = check_file(path, limits=limits)
    if checked.policy is not None:
        return Tested(path, checked, checked.policy, checked.policy.tests)
    if any(found.severity == "error" and found.code != TEST_FAILS for found in checked.diagnostics):
        return Tested(path, checked, None, ())
    policy, tests = _with_failing_tests(checked, path, limits)
    return Tested(path, checked, policy, tests)


def _with_failing_tests(
    checked: CheckResult, path: Path, limits: Path
) -> tuple[Policy, tuple[PolicyTest, ...]]:
    """The policy without its tests, which has no errors, and the tests read against it."""
    source, seen = checked.source, Findings(str(path))
    tree = parse_policy(source, seen)
    blocks = [block for block in tree.blocks if block.kind == "test"]
    untested = replace(tree, blocks=tuple(block for block in tree.blocks if block.kind != "test"))
    policy = check_policy(
        untested,
        source,
        directory=path.parent,
        inventory=None,
        limits=read_limits(limits),
        findings=seen,
    )
    assert policy is not None  # noqa: S101 - its only errors were tests
    selects = {select.name: select for select in policy.selects}
    applies = {apply.name: apply for apply in policy.applies}
    scope = Scope(source, policy.fleet, read_limits(limits), selects, applies, seen)
    read = (check_test(path.parent, block, scope) for block in blocks)
    return policy, tuple(test for test in read if test is not None)
