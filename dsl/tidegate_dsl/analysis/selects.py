"""What is said of one select: that it selects nothing, and which of its clauses decide nothing."""

from functools import partial

from tidegate_dsl.diagnostics import Excerpt, Findings, Source
from tidegate_dsl.model import Bound, Policy, Select, bound_of
from tidegate_dsl.syntax import Memory, find, tree
from tidegate_dsl.vocabulary import METRICS, REQUIREMENTS, spell

from .conditions import (
    absolute_is_idle,
    excluding_all,
    has_no_member,
    idle_conditions,
    idle_excludes,
    share_is_idle,
)
from .formed import of_lookback, of_window
from .intervals import EVERYTHING, Interval
from .persistence import bounds_of, fewest_members, greatest_flips, idle_requirements
from .watermarks import between_watermarks


def check_selects(
    pairs: list[tuple[tree.Block, Select]],
    policy: Policy,
    source: Source,
    findings: Findings,
    memory: Memory,
) -> None:
    """Report every select of a policy that is otherwise right."""
    used = {rule.select for rule in policy.applies}
    tested = {expectation.select for test in policy.tests for expectation in test.expect}
    between_runs = between_watermarks(policy)
    for block, select in pairs:
        own = findings.below(block.above)
        alone = partial(_check_alone, block, select, Excerpt(source, block.above), own)
        if not memory.recall("select", block, (), findings, alone):  # what a select is, its block alone says
            continue
        _check_use(block, select, used, tested, own)
        if select.hold_us <= between_runs and (hold := find(block.body.clauses, tree.Hold)):
            own.warning(
                "W105",
                f"a hold of {hold.duration.text} ends before the next run",
                hold.duration.span,
                notes=(
                    f"one that has just qualified is looked at again {spell(between_runs, 'duration')} later",
                ),
                help="hold for longer than that, or remove it",
            )


def _check_alone(block: tree.Block, select: Select, text: Excerpt, findings: Findings) -> bool:
    """What is said of the select whatever stands around it; whether it selects anything."""
    if _selects_nothing(block, select, findings):
        return False
    _check_requirements(block, select, findings)
    _check_excludes(block, select, text, findings)
    _check_conditions(block, select, text, findings)
    _check_leaves(block, select, findings)
    return True


def _check_use(
    block: tree.Block, select: Select, used: set[str], tested: set[str], findings: Findings
) -> None:
    if select.name not in used:
        findings.warning(
            "W101",
            f"no rule applies `{select.name}`",
            block.span,
            help=f"write an `apply` with `to {select.name}`, or remove it",
        )
    elif select.name not in tested:
        findings.warning(
            "W102",
            f"no test says what `{select.name}` must select",
            block.span,
            help='add a `test` with `given PREFIX in POP membership "1..."` and an `expect`',
        )


def _selects_nothing(block: tree.Block, select: Select, findings: Findings) -> bool:
    """Whether that is so; then it is reported, and nothing else of the select is."""
    rank = find(block.body.clauses, tree.Rank)
    absolute = select.rank.absolute
    if has_no_member(select) and rank and rank.absolute and absolute:
        findings.error(
            "C126",
            "no window can have a member",
            rank.absolute.span,
            notes=(_samples_that_count(select),),
            help="loosen the one or the other",
        )
        return True
    index = excluding_all(select)
    if index is None:
        return False
    clause = _excludes(block)[index]
    metric = select.exclude[index].metric
    left = of_lookback(select, metric)
    others = [other.clause for other in select.exclude[:index] if other.metric == metric]
    findings.error(
        "C126",
        "with this clause every prefix is excluded",
        clause.test.span,
        notes=(
            *(f"line {other.line}: {other.text}" for other in others),
            *(() if left == EVERYTHING else (_of_one_that_qualifies(metric, left),)),
        ),
        help="loosen it, or what stands against it",
    )
    return True


def _of_one_that_qualifies(metric: str, values: Interval) -> str:
    return f"{metric} over the lookback of one that qualifies is {_spoken(metric, values)}"


def _samples_that_count(select: Select) -> str:
    spoken = _spoken(select.metric, of_window(select, select.metric))
    return f"{select.metric} of the samples that count is {spoken}"


def _spoken(metric: str, values: Interval) -> str:
    """An interval in the words of the comparisons that made it: the shorter of `at most` and `below`."""
    dimension = METRICS[metric].dimension
    at_least, above = spell(values.low, dimension), spell(values.low - 1, dimension)
    at_most, below = spell(values.high, dimension), spell(values.high + 1, dimension)
    bounds = []
    if values.low > 0:
        bounds.append(f"above {above}" if len(above) < len(at_least) else f"at least {at_least}")
    if values.high < EVERYTHING.high:
        bounds.append(f"below {below}" if len(below) < len(at_most) else f"at most {at_most}")
    return " and ".join(bounds) or f"at least {at_least}"


def _check_requirements(block: tree.Block, select: Select, findings: Findings) -> None:
    idle = idle_requirements(select)
    for clause in block.body.clauses:
        if not isinstance(clause, tree.Require):
            continue
        subject = clause.subject.text
        least_samples = subject == "samples" and select.min_samples and select.min_samples.value == 1
        if subject in idle or least_samples:
            findings.warning(
                "W104",
                f"`{clause.key} {REQUIREMENTS[subject]} {clause.value.text}` can never strike",
                clause.span,
                notes=(_cause(subject, select),),
                help="remove it, or require more" if subject != "flap_rate" else "remove it, or allow less",
            )


def _cause(subject: str, select: Select) -> str:
    """Why a requirement never strikes, in the numbers of one that enters."""
    bounds = bounds_of(select, selected=False)
    pairs = bounds.lookback - 1
    members = f"a member in at least {bounds.members} of {bounds.lookback} windows"
    enough = f"one window of {bounds.lookback} is enough, and one that is a member in none is never selected"
    flips = greatest_flips(bounds.lookback, bounds.members)
    few = fewest_members(bounds.lookback, bounds.windows, bounds.flap_ppm)
    causes = {
        "samples": "a prefix without a sample is not observed anyway",
        "windows": f"one that qualifies is {members}, and observed in those"
        if bounds.windows > 1
        else "a prefix that is observed in no window is never selected",
        "flap_rate": f"of one that is {members}, at most {flips} of {pairs} pairs flip"
        if pairs
        else "a lookback of one window has no pair that could flip",
        "duty_cycle": enough
        if few == 1
        else "observed in every window and without a flip, a member of one window is one of all",
    }
    return causes[subject]


def _check_excludes(block: tree.Block, select: Select, text: Excerpt, findings: Findings) -> None:
    clauses = _excludes(block)
    for index in idle_excludes(select):
        clause, metric = clauses[index], select.exclude[index].metric
        others = [
            other.clause
            for place, other in enumerate(select.exclude)
            if other.metric == metric and place != index
        ]
        left = of_lookback(select, metric)
        findings.warning(
            "W106",
            f"`{text.words(clause.span)}` can never strike",
            clause.span,
            notes=(f"line {others[0].line} leaves out all that it would: {others[0].text}",)
            if others
            else (_of_one_that_qualifies(metric, left),),
            help="remove it, or exclude more",
        )


def _excludes(block: tree.Block) -> list[tree.Exclude]:
    return [clause for clause in block.body.clauses if isinstance(clause, tree.Exclude)]


def _check_conditions(block: tree.Block, select: Select, text: Excerpt, findings: Findings) -> None:
    origin, rank = find(block.body.clauses, tree.From), find(block.body.clauses, tree.Rank)
    if origin is None or rank is None:
        return
    for index in idle_conditions(select.where):
        test = origin.tests[index]
        findings.warning(
            "W107",
            f"this condition on `{test.metric.text}` says nothing more than another one",
            test.span,
            help="remove it, or correct one of the two",
        )
    if rank.absolute and absolute_is_idle(select):
        findings.warning(
            "W107",
            "this comparison is true in every window",
            rank.absolute.span,
            notes=(_samples_that_count(select),),
            help="remove it, or correct one of the two",
        )
    elif rank.share and rank.absolute and share_is_idle(select):
        findings.warning(
            "W107",
            "a share of 100% leaves nobody out, and the comparison decides alone",
            rank.share.span,
            help=f"write `rank {text.words(rank.absolute.span)}`",
        )


def _check_leaves(block: tree.Block, select: Select, findings: Findings) -> None:
    bounds: dict[str, Bound | None] = {
        "duty_cycle": select.min_duty_cycle,
        "flap_rate": select.max_flap_rate,
        "windows": select.min_windows,
    }
    excludes = iter(select.exclude)
    for clause in block.body.clauses:
        if isinstance(clause, tree.Require):
            bound = bounds.get(clause.subject.text)
            enter, leave = bound_of(bound, 0, selected=False), bound and bound.leave
        elif isinstance(clause, tree.Exclude):
            condition = next(excludes)
            enter, leave = condition.value, condition.leave
        else:
            continue
        if clause.leave is not None and leave == enter:
            findings.warning(
                "W108",
                f"a `leave` of {clause.leave.text} is the bound itself",
                clause.leave.span,
                notes=("without `leave` the same bound counts to enter and to stay",),
                help="remove it, or choose a bound that keeps prefixes longer",
            )
