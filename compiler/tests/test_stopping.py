"""The policy's guards: what is compared, and that a stopped rule does exactly what the clause says."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from decision_inputs import (
    CLAUSE,
    NOW,
    POPS,
    PREFIXES,
    decided,
    keys,
    measured,
    policy,
    prior,
    rule,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tidegate.decisions import GuardState
from tidegate.stopping import percentile
from tidegate.told import claims
from tidegate.turn import draw, held_out
from tidegate_dsl.model import Abort, Active, Bound, Clause, Guard

ABORT = Clause(31, "abort when delivery_rate p50 < 90% of hold_out")
PER_ARM = Clause(32, "require prefixes >= 2 per arm")
CHURN = Clause(33, "limit churn <= 50% per run")
FREEZE = Clause(34, "on_failure freeze")
RELEASE = Clause(34, "on_failure release for 6h")
SIX_HOURS = 6 * 3600 * 10**6
MBPS = 1_000_000


def watch(
    *, release_us=None, per_arm=None, churn_ppm=None, aborts=True, metric="delivery_rate", comparison="<"
):
    return Guard(
        name="brake",
        clause=CLAUSE,
        watch="bbr",
        aborts=(Abort(metric, 50, comparison, 900_000, ABORT),) if aborts else (),
        min_per_arm=per_arm and Bound(per_arm, PER_ARM),
        max_churn=churn_ppm and Bound(churn_ppm, CHURN),
        release_us=release_us,
        on_failure=(FREEZE if release_us is None else RELEASE) if aborts else None,
    )


def past(rates, arm, pop="ams1", first=0, admitted_hours=10):
    """Decisions of one arm, with what is measured of them now."""
    prefixes = [f"198.18.{first + i}.0/24" for i in range(len(rates))]
    before = [prior(pop, prefix, arm=arm, hours=0.1, admitted_hours=admitted_hours) for prefix in prefixes]
    return before, [measured(pop, prefix, rate) for prefix, rate in zip(prefixes, rates, strict=True)]


def run(a_guard, treated, control, *, qualifying=(), guards=(), at=NOW, **of_rule):
    one, seen = past(treated, "treated")
    two, also_seen = past(control, "held_out", first=100)
    a_policy = policy(rule(**of_rule), guards=(a_guard,))
    entrants = [measured("ams1", f"198.18.{200 + i}.0/24", rate) for i, rate in enumerate(qualifying)]
    return decided(a_policy, one + two, qualifying=entrants, previous=seen + also_seen, guards=guards, at=at)


def state(outcome, pop="ams1"):
    (found,) = [each for each in outcome.guards if each.pop == pop]
    return found


def released_at(moment, pop="ams1"):
    return GuardState(pop, "brake", "bbr", "released", "the abort", moment)


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 99))
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values, n):
    found = percentile(values, n)
    assert found in values
    assert sum(v <= found for v in values) * 100 >= n * len(values)
    assert sum(v < found for v in values) * 100 < n * len(values)
    assert found == sorted(values)[math.ceil(n * len(values) / 100) - 1]


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=9),
    st.lists(st.integers(1, 20), min_size=1, max_size=9),
    st.sampled_from(["<", ">"]),
)
def test_an_abort_is_true_when_the_percentiles_compare_so(treated, control, comparison):
    outcome = run(watch(comparison=comparison), treated, control)
    ours, theirs = (sorted(arm)[math.ceil(len(arm) / 2) - 1] for arm in (treated, control))
    true = ours * 10 < theirs * 9 if comparison == "<" else ours * 10 > theirs * 9
    assert state(outcome).status == ("frozen" if true else "ok")


def test_the_reason_has_the_clauses_and_the_figures():
    outcome = run(watch(release_us=SIX_HOURS), [3 * MBPS, 4 * MBPS, 9 * MBPS], [5 * MBPS, 6 * MBPS])
    assert state(outcome) == GuardState(
        "ams1",
        "brake",
        "bbr",
        "released",
        "abort when delivery_rate p50 < 90% of hold_out (line 31):"
        " 4.00 Mbps of 3 treated, 5.00 Mbps of 2 held out, 80%; on_failure release for 6h (line 34)",
        NOW,
    )
    assert {r.because for r in outcome.released} == {state(outcome).because}
    well = state(run(watch(), [5 * MBPS], [5 * MBPS]))
    assert well.because == (
        "abort when delivery_rate p50 < 90% of hold_out (line 31):"
        " 5.00 Mbps of 1 treated, 5.00 Mbps of 1 held out, 100%"
    )


@pytest.mark.parametrize(
    ("treated", "control", "status"),
    [([1, 1], [9, 9], "frozen"), ([1], [9, 9], "too_few"), ([1, 1], [9], "too_few"), ([], [], "too_few")],
)
def test_an_arm_that_is_too_small_is_not_judged(treated, control, status):
    found = state(run(watch(per_arm=2), treated, control))
    assert found.status == status
    if status == "too_few":
        counts = f"{len(treated)} treated and {len(control)} held out"
        assert found.because == (
            f"require prefixes >= 2 per arm (line 32): {counts} with a delivery_rate over the lookback, 2 needed"
        )


def test_only_those_count_that_were_in_for_a_whole_lookback_and_have_a_value():
    one, seen = past([9, 9], "treated", admitted_hours=6)
    late, seen_late = past([1, 1, 1], "treated", first=50, admitted_hours=5.99)
    unknown, _ = past([1, 1, 1], "treated", first=70)
    zero, seen_zero = past([0, 0, 0], "treated", first=80)
    two, also = past([9], "held_out", first=100)
    found = state(
        decided(
            policy(rule(), guards=(watch(),)),
            [*one, *late, *unknown, *zero, *two],
            previous=[*seen, *seen_late, *seen_zero, *also],
        )
    )
    assert found.status == "ok"
    assert " of 2 treated" in found.because


@pytest.mark.parametrize("hours", [0.1, 5.9, 6, 7])
@pytest.mark.parametrize("name", ["bbr", "former"])
def test_who_came_from_the_other_arm_or_another_rule_counts_a_lookback_later(hours, name):
    """The treated ones are slow; by their measurements from before they came they would stop the rule."""
    two, seen = past([9 * MBPS, 9 * MBPS], "held_out", first=100)
    shares = {d.prefix: draw("bbr", d.prefix) for d in two}
    above_all = -(-(max(shares.values()) + 1) * 1_000_000 >> 64) + 1
    before = [replace(d, rule=name, arm="treated", admitted_at=NOW - timedelta(days=2)) for d in two]
    moved = decided(
        policy(rule(hold_out_ppm=above_all)), before, qualifying=seen, at=NOW - timedelta(hours=hours)
    )
    assert {(d.arm, d.admitted_at, d.arm_since) for d in moved.decisions} == {
        ("held_out", NOW - timedelta(days=2), NOW - timedelta(hours=hours))
    }
    one, also = past([1, 1], "treated")
    found = decided(
        policy(rule(hold_out_ppm=above_all), guards=(watch(),)),
        [*one, *moved.decisions],
        previous=[*also, *seen],
    )
    assert state(found).status == ("frozen" if hours >= 6 else "too_few")


def test_each_pop_is_judged_for_itself():
    one, seen = past([1, 1], "treated")
    two, also = past([9, 9], "held_out", first=100)
    others = [replace(d, pop="fra2") for d in one + two]
    elsewhere = [m._replace(pop="fra2", delivery_rate=9) for m in seen + also]
    outcome = decided(
        policy(rule(), guards=(watch(release_us=SIX_HOURS),)),
        [*one, *two, *others],
        previous=[*seen, *also, *elsewhere],
    )
    assert [(g.pop, g.status) for g in outcome.guards] == [("ams1", "released"), ("fra2", "ok")]
    assert {r.pop for r in outcome.released} == {"ams1"}
    assert {d.pop for d in outcome.decisions} == {"fra2"}


rates = st.lists(st.integers(1, 20), max_size=8)
guards = st.builds(
    watch,
    release_us=st.none() | st.just(SIX_HOURS),
    per_arm=st.none() | st.integers(1, 3),
    churn_ppm=st.none() | st.integers(1, 1_000_000),
)
limits = {
    "per_pop": st.none() | st.integers(1, 6),
    "per_run": st.none() | st.integers(1, 4),
    "hold_out_ppm": st.sampled_from([0, 300_000]),
}


@given(guards, rates, rates, rates, st.fixed_dictionaries(limits))
def test_a_frozen_rule_keeps_exactly_what_it_has_and_a_released_one_nothing(
    a_guard, treated, control, entrants, of_rule
):
    outcome = run(a_guard, treated, control, qualifying=entrants, **of_rule)
    before = {(d.pop, d.prefix): d.arm for d in past(treated, "treated")[0]}
    before |= {(d.pop, d.prefix): d.arm for d in past(control, "held_out", first=100)[0]}
    after = {(d.pop, d.prefix): d.arm for d in outcome.decisions}
    status = state(outcome).status
    if status == "frozen":
        assert after == before
        assert len(outcome.deferred) == len(entrants)
    if status == "released":
        assert not after
        assert keys(outcome.released) == set(before)
        assert all(r.withdrawn for r in outcome.released)
        assert len(outcome.deferred) == len(entrants)
    if status in {"ok", "too_few"} and of_rule["per_pop"]:
        assert len(after) <= of_rule["per_pop"]


@given(guards, st.lists(st.integers(1, 20), max_size=16), rates, st.fixed_dictionaries(limits))
def test_planning_again_at_one_watermark_comes_to_the_same(a_guard, incumbents, entrants, of_rule):
    before, seen = past(incumbents, "treated")
    share = of_rule["hold_out_ppm"]
    before = [replace(d, arm="held_out" if held_out("bbr", d.prefix, share) else "treated") for d in before]
    found = [measured("ams1", f"198.18.{200 + i}.0/24", rate) for i, rate in enumerate(entrants)]
    found += [measured("fra2", f"198.18.{220 + i}.0/24", rate) for i, rate in enumerate(entrants)]
    a_policy = policy(rule(**of_rule), guards=(a_guard,))
    first = decided(a_policy, before, qualifying=found, previous=seen)
    # Who was released is in no arm any more, so that the second run compares those that are left.
    assume(all(released.withdrawn for released in first.released))
    known = {(m.pop, m.prefix): m for m in [*seen, *found]}
    selected = [known[d.pop, d.prefix] for d in first.decisions]
    second = decided(a_policy, first.decisions, qualifying=found, previous=selected, guards=first.guards)
    assert keys(second.decisions) == keys(first.decisions)
    assert {(d.pop, d.prefix, d.arm) for d in second.decisions} == {
        (d.pop, d.prefix, d.arm) for d in first.decisions
    }
    for pop in POPS:
        assert claims(a_policy, second, pop) == claims(a_policy, first, pop)
    stops = {"frozen", "released"}
    assert [g for g in second.guards if g.status in stops] == [g for g in first.guards if g.status in stops]


@given(st.integers(0, 12 * 60), rates.filter(bool))
@example(360, [1])
@example(359, [1])
def test_a_release_admits_nobody_until_its_time_is_over(minutes, entrants):
    aborted = NOW - timedelta(minutes=minutes)
    outcome = run(watch(release_us=SIX_HOURS), [], [], qualifying=entrants, guards=[released_at(aborted)])
    if minutes < 6 * 60:
        assert not outcome.decisions
        assert state(outcome) == released_at(aborted)
        assert {d.because for d in outcome.deferred} == {"the abort"}
    else:
        assert len(outcome.decisions) == len(entrants)
        assert state(outcome).status == "too_few"


def test_a_latch_is_of_the_rule_so_that_a_renamed_guard_does_not_open_it():
    renamed = replace(watch(release_us=SIX_HOURS), name="parachute")
    outcome = run(renamed, [], [], qualifying=[1], guards=[released_at(NOW - timedelta(hours=1))])
    assert (state(outcome).guard, state(outcome).status) == ("parachute", "released")
    assert not outcome.decisions


def test_a_second_abort_begins_a_release_of_its_own():
    aborted = NOW - timedelta(hours=7)
    outcome = run(watch(release_us=SIX_HOURS), [1], [9], guards=[released_at(aborted)])
    assert (state(outcome).status, state(outcome).since) == ("released", NOW)


def test_a_state_that_goes_on_keeps_the_watermark_at_which_it_began():
    began = NOW - timedelta(hours=1)
    earlier = replace(released_at(began), status="frozen")
    assert state(run(watch(), [1], [9], guards=[earlier])).since == began
    assert state(run(watch(), [9], [9], guards=[earlier])).since == NOW


def test_churn_above_the_bound_changes_nothing_in_that_pop_alone():
    before = [prior("ams1", p, hours=3) for p in PREFIXES[:2]] + [
        prior("fra2", p, hours=3) for p in PREFIXES[:4]
    ]
    staying = [measured("ams1", PREFIXES[0])] + [measured("fra2", p) for p in PREFIXES[:3]]
    entering = [measured(pop, PREFIXES[5]) for pop in POPS]
    outcome = decided(
        policy(rule(), guards=(watch(aborts=False, churn_ppm=490_000),)),
        before,
        qualifying=staying + entering,
        previous=staying,
    )
    assert [(g.pop, g.status) for g in outcome.guards] == [("ams1", "frozen"), ("fra2", "ok")]
    because = f"{CHURN.text} (line 33): 1 of 2 would leave"
    assert state(outcome).because == because
    ams1 = {d.prefix: (d.action, d.because) for d in outcome.decisions if d.pop == "ams1"}
    assert ams1 == {PREFIXES[0]: ("kept", f"{CLAUSE.text} (line 7)"), PREFIXES[1]: ("held", because)}
    assert {d.prefix for d in outcome.decisions if d.pop == "fra2"} == {*PREFIXES[:3], PREFIXES[5]}
    assert [(d.pop, d.prefix, d.because) for d in outcome.deferred] == [("ams1", PREFIXES[5], because)]
    assert [r.pop for r in outcome.released] == ["fra2"]


def test_churn_at_the_bound_and_growth_are_let_through():
    a_policy = policy(rule(), guards=(watch(aborts=False, churn_ppm=500_000),))
    before = [prior("ams1", p, hours=3) for p in PREFIXES[:2]]
    seen = [measured("ams1", p) for p in PREFIXES[1:6]] + [measured("fra2", p) for p in PREFIXES[:3]]
    outcome = decided(a_policy, before, qualifying=seen)
    assert {g.status for g in outcome.guards} == {"ok"}
    assert [r.prefix for r in outcome.released] == [PREFIXES[0]]
    assert len(outcome.decisions) == 8


def test_a_move_from_rule_to_rule_is_no_churn():
    rules = (rule(name="first"), rule())
    a_policy = policy(*rules, guards=(watch(aborts=False, churn_ppm=1),))
    before = [prior("ams1", p) for p in PREFIXES[:3]]
    outcome = decided(a_policy, before, qualifying=[measured("ams1", p) for p in PREFIXES[:3]])
    assert {d.rule for d in outcome.decisions} == {"first"}
    assert {g.status for g in outcome.guards} == {"ok"}


def test_an_earlier_rule_does_not_take_from_a_frozen_one():
    one, seen = past([1, 1], "treated")
    two, also = past([9, 9], "held_out", first=100)
    a_policy = policy(rule(name="first"), rule(), guards=(watch(),))
    outcome = decided(a_policy, one + two, qualifying=seen + also, previous=seen + also)
    assert {d.rule for d in outcome.decisions} == {"bbr"}
    assert keys(outcome.decisions) == keys(one + two)


def test_the_end_of_a_schedule_releases_what_is_frozen_too():
    over = Active(NOW - timedelta(days=9), NOW, Clause(12, "active A until B"))
    outcome = run(watch(), [1], [9], active=over)
    assert not outcome.decisions
    assert {r.because for r in outcome.released} == {"active A until B (line 12)"}
    assert (state(outcome).status, state(outcome).because) == ("ok", "active A until B (line 12)")
