"""Who is treated, held, held out and released, rule by rule in the order of the file. No I/O, no clock.

The previous generation's decisions and today's measurements go in; this generation's decisions come out. For
one input there is one output, on every machine.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from tidegate_dsl.model import Guard, Policy

from tidegate.admission import admit, within
from tidegate.decisions import Decision, Deferred, Evidence, GuardState, Key, Outcome, Released, place
from tidegate.incumbents import incumbents
from tidegate.stopping import churned, continued, judge_guards
from tidegate.turn import Turn


def decide(
    policy: Policy,
    evidence: Mapping[str, Evidence],
    previous: Iterable[Decision],
    watermark: datetime,
    guards: Iterable[GuardState] = (),
    lagging: Mapping[str, str] | None = None,
) -> Outcome:
    """Apply every rule in the order of the file; of two rules that claim a prefix in one POP the first wins.

    Args:
        policy: the rules, and the guards that watch them.
        evidence: by select, what telemetry says.
        previous: the decisions of the generation that is applied.
        watermark: end of the last closed window.
        guards: the states of the policy's guards in the generation that is applied.
        lagging: the reason, by POP, of those whose telemetry is missing: they keep what they have. Nothing of what
            `evidence` says of them is looked at.
    """
    lagging = lagging or {}
    evidence = {name: _without(lagging, found) for name, found in evidence.items()}
    before = {(d.pop, d.prefix): d for d in previous}
    earlier = {(state.rule, state.pop): state for state in guards}
    states = judge_guards(policy, evidence, before, earlier, watermark, lagging)
    selects = {select.name: select for select in policy.selects}
    watching = {guard.watch: guard for guard in policy.guards}
    decided: dict[Key, Decision] = {}
    released: dict[Key, Released] = {}
    deferred: list[Deferred] = []
    for rule in policy.applies:
        select = selects[rule.select]
        turn = Turn(rule, select, evidence[select.name], before, decided, states, watermark, lagging)
        made = _take(turn)
        if frozen := _churning(turn, made, watching.get(rule.name)):
            states = states | frozen
            made = _instead(made, _take(replace(turn, guards=states)), {pop for _, pop in frozen})
        decided |= {(d.pop, d.prefix): d for d in made.decisions}
        released |= {(r.pop, r.prefix): r for r in made.released}
        deferred += made.deferred
    orphans = (d for key, d in before.items() if key not in decided and key not in released)
    for d in orphans:
        released[d.pop, d.prefix] = Released(d.pop, d.prefix, d.rule, d.arm, "no rule covers it any more")
    current = [continued(state, earlier.get(key)) for key, state in states.items()]
    return Outcome(
        tuple(sorted(decided.values(), key=place)),
        tuple(sorted((r for key, r in released.items() if key not in decided), key=place)),
        tuple(sorted((d for d in deferred if (d.pop, d.prefix) not in decided | released), key=place)),
        tuple(sorted(current, key=lambda state: (state.pop, state.guard))),
    )


def _without(pops: Collection[str], found: Evidence) -> Evidence:
    """What telemetry says of all other POPs."""
    if not pops:
        return found
    return Evidence(
        tuple(m for m in found.qualifying if m.pop not in pops),
        tuple(m for m in found.previous if m.pop not in pops),
    )


def _take(turn: Turn) -> Outcome:
    """What one rule decides in its turn."""
    staying, leaving = incumbents(turn)
    staying, over = within(turn, staying)
    admitted, waiting = admit(turn, staying)
    return Outcome((*staying, *admitted), (*leaving, *over), tuple(waiting))


def _churning(turn: Turn, made: Outcome, guard: Guard | None) -> dict[tuple[str, str], GuardState]:
    """The states of the POPs that a bound on churn stops: of the rule's own, how many would leave."""
    name = turn.rule.name
    if guard is None or guard.max_churn is None or not turn.active:
        return {}
    had = Counter(d.pop for key, d in turn.before.items() if d.rule == name and key not in turn.taken)
    leaving = Counter(r.pop for r in made.released if turn.before[r.pop, r.prefix].rule == name)
    found = {}
    for pop in turn.rule.pops:
        state = turn.guards[name, pop]
        judged = churned(guard, state, had=had[pop], leaving=leaving[pop])
        if judged != state:
            found[name, pop] = judged
    return found


def _instead(made: Outcome, frozen: Outcome, pops: Collection[str]) -> Outcome:
    """In some POPs what a frozen rule decides, in all others what was made.

    What a frozen POP would have admitted stays counted in the run's limit, so that planning again at one watermark,
    when the others' are in already, comes to the same.
    """
    return Outcome(
        tuple(d for d in made.decisions if d.pop not in pops)
        + tuple(d for d in frozen.decisions if d.pop in pops),
        tuple(r for r in made.released if r.pop not in pops)
        + tuple(r for r in frozen.released if r.pop in pops),
        tuple(d for d in made.deferred if d.pop not in pops)
        + tuple(d for d in frozen.deferred if d.pop in pops),
    )
