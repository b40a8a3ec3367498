"""Rules that may claim the same connections, by two selects, in one POP at one time."""

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.model import Apply, Policy, Select
from tidegate_dsl.syntax import tree

from .intervals import fulfilling
from .persistence import bounds_of
from .rules import time_of

Treatment = tuple[str, int, bool]  # algorithm, bytes before it, fallback


def check_overlaps(
    pairs: list[tuple[tree.Block, Apply]], policy: Policy, dead: frozenset[str], findings: Findings
) -> None:
    """Warn of each rule that an earlier one overlaps, once; by one select the first simply has what it selects.

    Selects of different traffic classes are not compared: one prefix of both is possible and not thought of.
    """
    selects = {select.name: select for select in policy.selects}
    earlier: dict[tuple[str, str], dict[Treatment, list[Apply]]] = {}
    for block, rule in pairs:
        if rule.name in dead:
            continue
        traffic = selects[rule.select].traffic
        found = (
            (pop, other)
            for pop in rule.pops
            for treatment, others in earlier.get((pop, traffic), {}).items()
            if treatment != _treatment(rule, pop)
            for other in others
            if _overlap(other, rule, selects)
        )
        if first := next(found, None):
            _report(block, *first, rule, selects, findings.below(block.above))
        for pop in rule.pops:
            earlier.setdefault((pop, traffic), {}).setdefault(_treatment(rule, pop), []).append(rule)


def _treatment(rule: Apply, pop: str) -> Treatment:
    return rule.congestion_control, rule.min_bytes[pop], rule.ungated_fallback


def _overlap(first: Apply, second: Apply, selects: dict[str, Select]) -> bool:
    """Whether the rules apply at one moment, and some prefix can qualify for both of their selects."""
    return (
        first.select != second.select
        and max(time_of(first)[0], time_of(second)[0]) < min(time_of(first)[1], time_of(second)[1])
        and not _apart(selects[first.select], selects[second.select])
    )


def _apart(one: Select, other: Select) -> bool:
    """Whether no prefix can qualify for both: no window makes it a member of both, and both need too many."""
    alike = (
        one.metric == other.metric
        and (one.prefix_length_ipv4, one.prefix_length_ipv6)
        == (other.prefix_length_ipv4, other.prefix_length_ipv6)
        and _samples(one) == _samples(other)
        and (one.over_us, one.step_us) == (other.over_us, other.step_us)
    )
    if not alike or one.rank.absolute is None or other.rank.absolute is None:
        return False
    members = bounds_of(one, selected=False).members + bounds_of(other, selected=False).members
    meet = fulfilling(one.rank.absolute).meet(fulfilling(other.rank.absolute))
    return meet.empty and members > one.windows


def _samples(select: Select) -> set[tuple[str, str, int]]:
    return {(condition.metric, condition.comparison, condition.value) for condition in select.where}


def _report(
    block: tree.Block, pop: str, first: Apply, second: Apply, selects: dict[str, Select], findings: Findings
) -> None:
    one, other = selects[first.select], selects[second.select]
    lengths = (
        (one.prefix_length_ipv4, other.prefix_length_ipv4),
        (one.prefix_length_ipv6, other.prefix_length_ipv6),
    )
    notes = []
    if any(mine == theirs for mine, theirs in lengths):
        notes.append(f"of one prefix, `{first.name}` has it: it stands first in the file")
    if any(mine != theirs for mine, theirs in lengths):
        notes.append("of two prefixes of which one is in the other, a connection follows the longer")
    findings.warning(
        "W109",
        f"`{second.name}` and `{first.name}` can want different things of one connection in `{pop}`",
        block.span,
        notes=(f"`{first.name}` is on line {first.clause.line}", *notes),
        help=f"let them apply in other POPs or at other times, or write `# allow W109: {first.name} goes first`",
    )
