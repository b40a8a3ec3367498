"""`decide` and what hosts are told, against a reference written from dsl/SPEC.md sections 6 and 8 to 10 alone.

TIDEGATE_REFERENCE_SEQUENCES is how many random sequences of runs are tried, TIDEGATE_REFERENCE_SEED which ones.
"""

import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from random_decisions import POPS, START_S, WINDOWS, random_past, random_policy, random_telemetry
from reference_decisions import Decided, Generation, Key, Seen, Selected, claims, control_hosts, decide
from reference_selection import persistence
from tidegate import told
from tidegate.decide import decide as tidegate_decide
from tidegate.decisions import Decision, Evidence, GuardState, Outcome, prefix_order
from tidegate.select import Measurement, excluded_by
from tidegate_dsl import check_text, read_limits, render
from tidegate_dsl.model import Policy, Select

SEQUENCES = int(os.environ.get("TIDEGATE_REFERENCE_SEQUENCES", "400"))
SEED = int(os.environ.get("TIDEGATE_REFERENCE_SEED", "1"))
ENOUGH = 400  # sequences that meet everything, with any seed
LIMITS = read_limits(Path(__file__).parents[2] / "policies" / "limits.yaml")
CONTRADICTIONS = {"C125", "C126", "C127", "C128"}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inventory")
    groups = "".join(
        f"    pop_{pop}:\n      hosts:\n        {pop}-edge[1:{hosts}]:\n      vars:\n        tidegate_pop: {pop}\n"
        for pop, hosts in POPS.items()
    )
    (directory / "hosts.yml").write_text(f"pops:\n  children:\n{groups}", encoding="utf-8")
    return directory


def draw_policy(random: Random, inventory: Path) -> tuple[Policy, str]:
    """A random policy that the checker takes, and its text; contradictions are drawn again."""
    while True:
        text = random_policy(random)
        result = check_text(text, "random.tide", limits=LIMITS, inventory=inventory)
        if result.policy is not None:
            return result.policy, text
        errors = {found.code for found in result.diagnostics if found.severity == "error"}
        assert errors <= CONTRADICTIONS, render(result)


def with_other_shares(random: Random, policy: Policy) -> Policy:
    """The policy after a change of every `hold_out`."""
    shares = (0, 200_000, 600_000)
    return replace(
        policy, applies=tuple(replace(rule, hold_out_ppm=random.choice(shares)) for rule in policy.applies)
    )


def moment(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def measurement(key: Key, seen: Seen) -> Measurement:
    """What selection would hand on."""
    marks = seen.membership
    pairs = [a + b for a, b in pairwise(marks) if "." not in (a, b)]
    value = {name: seen.values.get(name, (0, 0)) for name in ("delivery_rate", "rtt", "retransmit_ratio")}
    return Measurement(
        pop=key[0],
        prefix=key[1],
        lookback_windows=WINDOWS,
        observed=sum(1 << i for i, mark in enumerate(marks) if mark != "."),
        member=sum(1 << i for i, mark in enumerate(marks) if mark == "1"),
        flips=sum(a != b for a, b in pairs),
        adjacent_pairs=len(pairs),
        delivery_rate=value["delivery_rate"][0],
        rtt=value["rtt"][0],
        cwnd=10,
        min_rtt=5_000,
        retransmitted_segments=value["retransmit_ratio"][0],
        data_segments=value["retransmit_ratio"][1],
    )


def evidence(policy: Policy, select: Select, seen: dict[Key, Seen], before: Generation) -> Evidence:
    """What a run hands to `decide`: who qualifies without being selected, and all who are selected."""
    order = sorted(seen, key=lambda key: (key[0], prefix_order(key[1])))
    found = {key: measurement(key, seen[key]) for key in order}
    rules = {rule.name for rule in policy.applies if rule.select == select.name}
    return Evidence(
        tuple(
            measured
            for key, measured in found.items()
            if not persistence(select, seen[key].membership, staying=False)
            and excluded_by(select, measured) is None
        ),
        tuple(m for key, m in found.items() if key in before.selected and before.selected[key].rule in rules),
    )


def previous(policy: Policy, before: Generation) -> tuple[list[Decision], list[GuardState]]:
    """The applied generation as `decide` gets it."""
    rules = {rule.name: rule for rule in policy.applies}
    guards = {guard.watch: guard.name for guard in policy.guards}
    decisions = []
    for (pop, prefix), was in before.selected.items():
        rule = rules.get(was.rule)
        arm = "held_out" if was.held_out else "treated"
        times = moment(was.admitted), moment(was.since), moment(was.qualified)
        select = rule.select if rule else "gone"
        decisions.append(Decision(pop, prefix, was.rule, select, "kept", arm, "before", *times, None))
    states = [
        GuardState(pop, guards[rule], rule, "released", "before", moment(since))
        for (rule, pop), since in before.released_since.items()
    ]
    return decisions, states


def compare(policy: Policy, outcome: Outcome, wanted: Decided, before: Generation, mark: int) -> None:
    """Assert that both decided the same."""
    made = {
        (d.pop, d.prefix): Selected(
            d.rule,
            d.arm == "held_out",
            *(int(at.timestamp()) for at in (d.admitted_at, d.arm_since, d.qualified_at)),
        )
        for d in outcome.decisions
    }
    selected = wanted.generation.selected
    assert made == selected
    assert {(d.pop, d.prefix) for d in outcome.decisions if d.action == "added"} == {
        key for key in selected if key not in before.selected
    }
    assert {(r.pop, r.prefix) for r in outcome.released} == before.selected.keys() - selected.keys()
    assert {(d.pop, d.prefix) for d in outcome.deferred} == wanted.deferred
    rules = {rule.name: rule for rule in policy.applies}
    states = {(state.rule, state.pop): state for state in outcome.guards}
    assert {
        key: int(s.since.timestamp()) for key, s in states.items() if s.status == "released"
    } == wanted.generation.released_since
    assert {key for key, s in states.items() if s.status == "frozen"} == wanted.frozen
    for pop in policy.fleet.pops:
        assert by_prefix(told.claims(policy, outcome, pop.name)) == claims(
            policy, wanted.generation, pop.name
        )
        control_claims, hosts = told.control(policy, outcome, pop, moment(mark))
        experiment = next((e for e in policy.experiments if pop.name in rules[e.on].pops), None)
        without = claims(policy, wanted.generation, pop.name, without=experiment.on) if experiment else {}
        # Where the rule has no claims, control hosts and the others are told the same, and nobody is named.
        if experiment and without != claims(policy, wanted.generation, pop.name):
            assert hosts == control_hosts(policy, pop, mark)
            assert by_prefix(control_claims) == (without if hosts else {})
        else:
            assert (control_claims, hosts) == ([], [])


def by_prefix(document: list[dict[str, object]]) -> dict[object, dict[str, object]]:
    named = ("congestion_control", "min_bytes", "initcwnd")
    return {claim["prefix"]: {name: claim[name] for name in named if name in claim} for claim in document}


def test_decisions_are_those_of_the_specification(inventory: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(SEQUENCES):
        random = Random(f"{SEED}:{number}")
        policy, text = draw_policy(random, inventory)
        applied = Generation(random_past(random, [rule.name for rule in policy.applies]))
        mark = START_S
        telemetry = {select.name: random_telemetry(random, select.metric) for select in policy.selects}
        for turn in range(random.randint(5, 10)):
            if random.random() < 0.85:  # else a second run at one watermark
                mark += random.choice((60, 240, 300, 300, 600))
                telemetry = {
                    select.name: {
                        key: now if random.random() < 0.3 else telemetry[select.name].get(key, now)
                        for key, now in random_telemetry(random, select.metric).items()
                    }
                    for select in policy.selects
                }
            if random.random() < 0.1:
                policy = with_other_shares(random, policy)
            wanted = decide(policy, telemetry, applied, mark)
            found = {s.name: evidence(policy, s, telemetry[s.name], applied) for s in policy.selects}
            decisions, states = previous(policy, applied)
            outcome = tidegate_decide(policy, found, decisions, moment(mark), states)
            try:
                compare(policy, outcome, wanted, applied, mark)
            except AssertionError as error:
                where = f"seed {SEED}, sequence {number}, run {turn}, watermark {mark}"
                raise AssertionError(f"{where}:\n{text}\nbefore: {applied}\n{error}") from error
            seen += counts(policy, outcome, wanted, applied)
            if random.random() < 0.8:  # else nobody applied it
                applied = wanted.generation

    print("\n".join(f"{count:7} {what}" for what, count in sorted(seen.items())))
    if SEQUENCES >= ENOUGH:
        assert [what for what, count in seen.items() if not count] == []


def counts(policy: Policy, outcome: Outcome, wanted: Decided, before: Generation) -> Counter[str]:
    """What a run met."""
    now = wanted.generation
    both = now.selected.keys() & before.selected.keys()
    told_control = [told.control(policy, outcome, pop, moment(START_S)) for pop in policy.fleet.pops]
    return Counter(
        {
            "added": len(now.selected.keys() - before.selected.keys()),
            "released": len(before.selected.keys() - now.selected.keys()),
            "deferred": len(wanted.deferred),
            "held": sum(d.action == "held" for d in outcome.decisions),
            "taken over": sum(before.selected[key].rule != now.selected[key].rule for key in both),
            "moved between arms": sum(
                before.selected[key].held_out != now.selected[key].held_out for key in both
            ),
            "frozen": len(wanted.frozen),
            "released by a guard": len(now.released_since.keys() - before.released_since.keys()),
            "kept out by a guard": len(now.released_since.keys() & before.released_since.keys()),
            "held out": sum(d.arm == "held_out" for d in outcome.decisions),
            "control hosts": sum(len(hosts) for _, hosts in told_control),
        }
    )
