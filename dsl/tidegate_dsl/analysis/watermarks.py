"""How often a policy decides."""

from math import gcd

from tidegate_dsl.model import Policy


def between_watermarks(policy: Policy) -> int:
    """The least time between two watermarks in microseconds, each the end of a window of every select.

    Where the longest step is a multiple of all, windows end together with its own (SPEC.md, "Persistence"). Else it
    is not computed, and the greatest common divisor is a lower bound.
    """
    steps = [select.step_us for select in policy.selects]
    longest = max(steps, default=0)
    return longest if all(longest % step == 0 for step in steps) else gcd(*steps)
