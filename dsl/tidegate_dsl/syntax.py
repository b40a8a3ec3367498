"""The syntax tree: what the file says, with a span on everything, and nothing yet resolved."""

from dataclasses import dataclass

from .lexer import Comment
from .source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A word, or a string's text without its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as `mantissa / 10**scale`, so that it is exact, and the unit as written, if any."""

    mantissa: int
    scale: int
    unit: str | None
    text: str
    span: Span

    def times(self, factor: int) -> int | None:
        """The number times `factor`; None where that is no whole number."""
        denominator: int = 10**self.scale
        value, rest = divmod(self.mantissa * factor, denominator)
        return None if rest else value


@dataclass(frozen=True, slots=True)
class Test:
    """One condition: a metric compared with a value, or a flag (`comparison` and `value` are None)."""

    metric: Name
    comparison: str | None
    value: Quantity | None
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Clause:
    """What every clause has: `key` is what may stand once in a block, such as `require windows`."""

    key: str
    span: Span


@dataclass(frozen=True, slots=True)
class Phrase(Clause):
    """A clause whose words are all fixed: `fallback ungated`, `observe cwnd by destination`."""


@dataclass(frozen=True, slots=True)
class Measure(Clause):
    """`measure METRIC by prefix /LENGTH /LENGTH`."""

    metric: Name
    ipv4: Quantity
    ipv6: Quantity


@dataclass(frozen=True, slots=True)
class From(Clause):
    """`from traffic CLASS [where …]`."""

    traffic: Name
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Over(Clause):
    """`over DURATION step DURATION`."""

    over: Quantity
    step: Quantity


@dataclass(frozen=True, slots=True)
class Rank(Clause):
    """`rank SIDE N% of pop [and METRIC COMPARISON VALUE]`, or only the comparison."""

    side: Name | None
    share: Quantity | None
    absolute: Test | None


@dataclass(frozen=True, slots=True)
class Require(Clause):
    """`require SUBJECT COMPARISON VALUE [leave COMPARISON VALUE]`."""

    subject: Name
    value: Quantity
    leave: Quantity | None


@dataclass(frozen=True, slots=True)
class Exclude(Clause):
    """`exclude METRIC COMPARISON VALUE [leave COMPARISON VALUE]`."""

    test: Test
    leave: Quantity | None


@dataclass(frozen=True, slots=True)
class Hold(Clause):
    """`hold DURATION`."""

    duration: Quantity


@dataclass(frozen=True, slots=True)
class To(Clause):
    """`to SELECT`."""

    select: Name


@dataclass(frozen=True, slots=True)
class In(Clause):
    """`in POP, GROUP [except POP, …]`."""

    included: tuple[Name, ...]
    excepted: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class SetAlgorithm(Clause):
    """`set congestion_control ALGORITHM`."""

    algorithm: Name


@dataclass(frozen=True, slots=True)
class When(Clause):
    """`when transfer_size >= SIZE`."""

    size: Quantity


@dataclass(frozen=True, slots=True)
class Limit(Clause):
    """`limit N prefixes per pop` or `limit N new prefixes per run`."""

    count: Quantity
    new: bool


@dataclass(frozen=True, slots=True)
class HoldOut(Clause):
    """`hold_out N% of prefixes` of a rule, `of hosts` of an experiment, `of destinations` of what is learned."""

    share: Quantity


@dataclass(frozen=True, slots=True)
class Active(Clause):
    """`active TIME until TIME`."""

    start: Name
    end: Name


@dataclass(frozen=True, slots=True)
class Override(Clause):
    """`override POP { … }`; its span is its header."""

    pop: Name
    body: "Body"


@dataclass(frozen=True, slots=True)
class Smooth(Clause):
    """`smooth N every DURATION`."""

    weight: Quantity
    every: Quantity


@dataclass(frozen=True, slots=True)
class SetInitcwnd(Clause):
    """`set initcwnd between N and N segments`."""

    low: Quantity
    high: Quantity


@dataclass(frozen=True, slots=True)
class Expire(Clause):
    """`expire DURATION`."""

    duration: Quantity


@dataclass(frozen=True, slots=True)
class Toward(Clause):
    """`toward DIRECTION, DIRECTION`."""

    directions: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class For(Clause):
    """`for ipv4|ipv6|PREFIX, …`."""

    targets: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class SetWindow(Clause):
    """`set initcwnd N segments` as it stands, `set initrwnd N segments` beside what is learned."""

    segments: Quantity


@dataclass(frozen=True, slots=True)
class RuleOf(Clause):
    """`watch APPLY` of a guard, `on APPLY` of an experiment."""

    apply: Name


@dataclass(frozen=True, slots=True)
class Abort(Clause):
    """`abort when METRIC pN COMPARISON N% of hold_out`."""

    metric: Name
    percentile: Name
    comparison: str
    share: Quantity


@dataclass(frozen=True, slots=True)
class PerArm(Clause):
    """`require prefixes >= N per arm`."""

    count: Quantity


@dataclass(frozen=True, slots=True)
class Churn(Clause):
    """`limit churn <= N% per run`."""

    share: Quantity


@dataclass(frozen=True, slots=True)
class OnFailure(Clause):
    """`on_failure freeze` (no duration) or `on_failure release for DURATION`."""

    duration: Quantity | None


@dataclass(frozen=True, slots=True)
class Switchback(Clause):
    """`switchback DURATION`."""

    period: Quantity


@dataclass(frozen=True, slots=True)
class Given(Clause):
    """`given PREFIX in POP membership STRING [selected]`."""

    prefix: Name
    pop: Name
    membership: Name
    selected: bool


@dataclass(frozen=True, slots=True)
class GivenTelemetry(Clause):
    """`given telemetry STRING [until TIME]`."""

    path: Name
    until: Name | None


@dataclass(frozen=True, slots=True)
class Expect(Clause):
    """`expect SELECT VERDICT PREFIX [in POP] [because REASON]`."""

    select: Name
    verdict: Name
    prefix: Name
    pop: Name | None
    because: Name | None


@dataclass(frozen=True, slots=True)
class Body:
    """What stands between braces.

    `broken` holds the first words of clauses that were reported; "" stands for a clause of which not even
    the first word is known. Whatever they might have said is not reported as missing.
    """

    clauses: tuple[Clause, ...]
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class Block:
    """`select NAME { … }` and its like; the span is the header up to the name."""

    kind: str
    name: Name
    span: Span
    body: Body


@dataclass(frozen=True, slots=True)
class Edition(Clause):
    """`edition 2026.1`."""

    edition: Name


@dataclass(frozen=True, slots=True)
class Inventory(Clause):
    """`inventory "PATH"`."""

    path: Name


@dataclass(frozen=True, slots=True)
class File:
    """A whole policy file.

    `head` are the clauses outside of blocks; `skipped` the names of blocks that were reported and left out, so
    that whoever refers to one is not reported again.
    """

    head: Body
    blocks: tuple[Block, ...]
    skipped: frozenset[str]
    comments: tuple[Comment, ...]
