"""A checked policy: names resolved, units reduced to integers, POP sets expanded. What the compiler reads.

Base units: time in microseconds, size in bytes, rate in bits per second, ratio in parts per million (ppm),
windows (initcwnd) in segments. `line` is the clause's line in the policy file, for `because` and `explain`.
"""

from .clauses import Bound, Clause, Comparison, Condition
from .fleet import Fleet, Pop
from .membership import MEMBER, NOT_MEMBER, PPM, UNOBSERVED, Figures, bound_of, figures, judge, missed
from .moved import moved
from .policy import Policy
from .rules import Abort, Active, Apply, Experiment, Guard
from .selects import Rank, Select, TrafficClass
from .tests import Expectation, Membership, PolicyTest, Recording
from .windows import Initcwnd, Learn

__all__ = [
    "MEMBER",
    "NOT_MEMBER",
    "PPM",
    "UNOBSERVED",
    "Abort",
    "Active",
    "Apply",
    "Bound",
    "Clause",
    "Comparison",
    "Condition",
    "Expectation",
    "Experiment",
    "Figures",
    "Fleet",
    "Guard",
    "Initcwnd",
    "Learn",
    "Membership",
    "Policy",
    "PolicyTest",
    "Pop",
    "Rank",
    "Recording",
    "Select",
    "TrafficClass",
    "bound_of",
    "figures",
    "judge",
    "missed",
    "moved",
]
