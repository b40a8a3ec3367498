"""A policy's tests, those that fail included: the checker reports them as errors, and gives no policy then."""

from dataclasses import dataclass
from pathlib import Path

from tidegate_dsl import CheckResult, check_file
from tidegate_dsl.model import Policy, PolicyTest


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
    return Tested(path, checked, checked.tested, checked.tested.tests if checked.tested else ())
