"""What every block is made of: a clause's place, and the bounds and conditions that it sets."""

from dataclasses import dataclass
from typing import Literal

Comparison = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Clause:
    """Where a clause stands, and its words as written."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """`metric comparison value`, value in the metric's base unit; a flag (`app_limited`) compares with 0 or 1.

    `leave` is, in an `exclude`, the value that counts for a prefix that is selected already; None: the same.
    """

    metric: str
    comparison: Comparison | Literal["=="]
    value: int
    clause: Clause
    leave: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """An inclusive bound of a `require` or `limit` clause: shares in ppm, everything else as counts.

    `leave` is the bound that counts for a prefix that is selected already, inclusive as well: `leave < 50%` is kept
    as the least that stays, 500,000, and `leave > 20%` as the most. None: the same as `value`.
    """

    value: int
    clause: Clause
    leave: int | None = None
