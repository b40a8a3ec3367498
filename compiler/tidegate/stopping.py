"""What stops a rule in a POP: the policy's `guard` blocks. No I/O, no clock.

Not to be confused with Open Policy Agent, which judges what a whole run decided (`guard.py`). These blocks compare
a rule's treated prefixes with those that it holds out, and bound how much of a POP one run may let go.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tidegate_dsl.model import Abort, Guard, Policy, Select
from tidegate_dsl.vocabulary import spell

from tidegate.decisions import Decision, Evidence, GuardState, GuardStatus, Key, cite
from tidegate.select import Measurement
from tidegate.turn import active, stopped
from tidegate.values import say

PPM: Final = 1_000_000
Verdict = tuple[GuardStatus, str]


@dataclass(frozen=True, slots=True)
class Arms:
    """The values of one metric over the lookback, one a prefix."""

    treated: list[int]
    held_out: list[int]


def judge_guards(
    policy: Policy,
    evidence: Mapping[str, Evidence],
    before: Mapping[Key, Decision],
    earlier: Mapping[tuple[str, str], GuardState],
    watermark: datetime,
    lagging: Mapping[str, str],
) -> dict[tuple[str, str], GuardState]:
    """Judge every guard's `abort` clauses in every POP of its rule.

    Args:
        policy: whose guards; at most one watches a rule.
        evidence: by select; `previous` holds what is compared.
        before: the previous generation's decisions.
        earlier: the guards' states in the previous generation, by rule and POP.
        watermark: end of the last closed window.
        lagging: the reason, by POP, where there is nothing to judge by: what a guard stopped stays stopped.

    Returns:
        The states by rule and POP.
    """
    rules = {rule.name: rule for rule in policy.applies}
    selects = {select.name: select for select in policy.selects}
    judged = {}
    for guard in policy.guards:
        rule = rules[guard.watch]
        select = selects[rule.select]
        seasoned = _seasoned(rule.name, select, evidence[select.name], before, watermark)
        for pop in rule.pops:
            key = (rule.name, pop)
            if because := lagging.get(pop):
                stop = stopped(earlier, *key)
                unjudged = GuardState(pop, guard.name, rule.name, "too_few", because, watermark)
                judged[key] = replace(stop, guard=guard.name) if stop else unjudged
            elif latched := _latched(guard, earlier.get(key), watermark):
                judged[key] = latched
            elif rule.active and not active(rule, watermark):
                judged[key] = GuardState(
                    pop, guard.name, rule.name, "ok", cite(rule.active.clause), watermark
                )
            else:
                status, because = _judge(guard, seasoned[pop])
                judged[key] = GuardState(pop, guard.name, rule.name, status, because, watermark)
    return judged


def churned(guard: Guard, state: GuardState, had: int, leaving: int) -> GuardState:
    """The state with `limit churn` judged as well, on what the rule would do in the POP.

    What moves from one rule to another does not leave, and growth is bounded by the rule's limits, not here.
    """
    bound = guard.max_churn
    if bound is None or not had or state.status in {"frozen", "released"}:
        return state
    if leaving * PPM <= bound.value * had:
        return state
    because = f"{cite(bound.clause)}: {leaving} of {had} would leave"
    return replace(state, status="frozen", because=because)


def continued(state: GuardState, earlier: GuardState | None) -> GuardState:
    """The state with the watermark at which it began; a second abort begins anew."""
    if earlier is None or earlier.status != state.status or state.status == "released":
        return state
    return replace(state, since=earlier.since)


def percentile(values: Iterable[int], n: int) -> int:
    """The ceil(n x count / 100)-th smallest: an observed value, never a mean of two.

    Raises:
        IndexError: there are no values.
    """
    ordered = sorted(values)
    return ordered[-(-n * len(ordered) // 100) - 1]


def _latched(guard: Guard, earlier: GuardState | None, watermark: datetime) -> GuardState | None:
    """The release of an earlier abort, while its time is not over."""
    if earlier is None or earlier.status != "released" or guard.release_us is None:
        return None
    over = watermark >= earlier.since + timedelta(microseconds=guard.release_us)
    return None if over else replace(earlier, guard=guard.name)


def _seasoned(
    rule: str,
    select: Select,
    evidence: Evidence,
    before: Mapping[Key, Decision],
    watermark: datetime,
) -> Mapping[str, list[tuple[Decision, Measurement]]]:
    """By POP, those that were in their arm for a whole lookback: all that is measured of them is of that arm."""
    measured = {(m.pop, m.prefix): m for m in evidence.previous}
    since = watermark - timedelta(microseconds=select.over_us)
    found: defaultdict[str, list[tuple[Decision, Measurement]]] = defaultdict(list)
    for key, prior in before.items():
        if prior.rule == rule and prior.arm_since <= since and key in measured:
            found[prior.pop].append((prior, measured[key]))
    return found


def _judge(guard: Guard, seasoned: list[tuple[Decision, Measurement]]) -> Verdict:
    """The first abort that is true; else one that could not be judged; else that all is well."""
    verdicts = [_compare(guard, abort, _arms(abort.metric, seasoned)) for abort in guard.aborts]
    worst = min(verdicts, key=lambda verdict: _GRAVITY[verdict[0]], default=None)
    if worst is None:
        return "ok", cite(guard.clause)
    if worst[0] == "ok":
        return "ok", "; ".join(because for _, because in verdicts)
    return worst


_GRAVITY: Final[Mapping[GuardStatus, int]] = {"released": 0, "frozen": 0, "too_few": 1, "ok": 2}


def _compare(guard: Guard, abort: Abort, arms: Arms) -> Verdict:
    least = guard.min_per_arm.value if guard.min_per_arm else 1
    if min(len(arms.treated), len(arms.held_out)) < least:
        clause = guard.min_per_arm.clause if guard.min_per_arm else abort.clause
        counted = f"{len(arms.treated)} treated and {len(arms.held_out)} held out"
        return "too_few", f"{cite(clause)}: {counted} with a {abort.metric} over the lookback, {least} needed"
    treated, control = percentile(arms.treated, abort.percentile), percentile(arms.held_out, abort.percentile)
    left, right = treated * PPM, abort.ratio_ppm * control
    because = f"{cite(abort.clause)}: {_figures(abort.metric, treated, control, arms)}"
    if not (left < right if abort.comparison == "<" else left > right):
        return "ok", because
    if guard.on_failure:
        because = f"{because}; {cite(guard.on_failure)}"
    return ("frozen" if guard.release_us is None else "released"), because


def _figures(metric: str, treated: int, control: int, arms: Arms) -> str:
    """Both percentiles, of how many prefixes, and their ratio rounded down to a whole ppm."""
    ratio = f", {spell(treated * PPM // control, 'ratio')}" if control else ""
    return (
        f"{say(metric, treated)} of {len(arms.treated)} treated,"
        f" {say(metric, control)} of {len(arms.held_out)} held out{ratio}"
    )


def _arms(metric: str, seasoned: Iterable[tuple[Decision, Measurement]]) -> Arms:
    arms = Arms([], [])
    for prior, measurement in seasoned:
        value = measurement.metric(metric)
        if value is not None:
            (arms.treated if prior.arm == "treated" else arms.held_out).append(value)
    return arms
