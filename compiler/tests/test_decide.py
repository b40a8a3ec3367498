"""decide's limits hold whatever telemetry and the previous generation say."""

from dataclasses import replace
from datetime import timedelta

from decision_inputs import (
    NOW,
    POPS,
    PREFIXES,
    SELECT,
    decided,
    measured,
    policy,
    prior,
    rule,
)
from hypothesis import given
from hypothesis import strategies as st
from tidegate.decide import decide
from tidegate.decisions import Evidence
from tidegate.told import claims
from tidegate.turn import held_out

keys = st.tuples(st.sampled_from(POPS), st.sampled_from(PREFIXES))
qualifiers = st.dictionaries(keys, st.integers(1, 100), max_size=20)
priors = st.dictionaries(keys, st.floats(0, 4), max_size=20)
rules = st.builds(
    rule,
    per_pop=st.none() | st.integers(1, 6),
    per_run=st.none() | st.integers(1, 8),
    hold_out_ppm=st.sampled_from([0, 300_000, 1_000_000]),
)


def run(a_rule, qualifying, before, at=NOW):
    found = [measured(*key, rate) for key, rate in qualifying.items()]
    return decided(policy(a_rule), before, qualifying=found, at=at)


@given(rules, qualifiers, priors)
def test_limits_hold_and_nobody_is_lost(a_rule, qualifying, before):
    earlier = [prior(*key, hours=hours) for key, hours in before.items()]
    outcome = run(a_rule, qualifying, earlier)
    for pop in POPS:
        in_pop = [d for d in outcome.decisions if d.pop == pop]
        assert pop not in a_rule.max_prefixes or len(in_pop) <= a_rule.max_prefixes[pop].value
        told = {c["prefix"] for c in claims(policy(a_rule), outcome, pop)}
        assert told == {d.prefix for d in in_pop if d.arm == "treated"}
        assert all(held_out("bbr", d.prefix, a_rule.hold_out_ppm) == (d.arm == "held_out") for d in in_pop)
    new = [d for d in outcome.decisions if d.action == "added"]
    already = sum(d.admitted_at == NOW for d in outcome.decisions if d.action != "added")
    assert a_rule.max_new_per_run is None or len(new) + already <= max(a_rule.max_new_per_run.value, already)
    decided = {(d.pop, d.prefix) for d in outcome.decisions}
    released = {(r.pop, r.prefix) for r in outcome.released}
    deferred = {(d.pop, d.prefix) for d in outcome.deferred}
    assert decided | released | deferred == set(qualifying) | set(before)
    assert not decided & released
    assert not decided & deferred


@given(rules, qualifiers, priors)
def test_planning_again_at_one_watermark_changes_nothing(a_rule, qualifying, before):
    first = run(a_rule, qualifying, [prior(*key, hours=hours) for key, hours in before.items()])
    second = run(a_rule, qualifying, first.decisions)
    assert not [d for d in second.decisions if d.action == "added"]
    assert not second.released
    for pop in POPS:
        assert claims(policy(a_rule), second, pop) == claims(policy(a_rule), first, pop)


@given(rules, qualifiers, priors, st.randoms())
def test_order_of_input_does_not_matter(a_rule, qualifying, before, random):
    earlier = [prior(*key, hours=hours) for key, hours in before.items()]
    shuffled = list(qualifying.items())
    random.shuffle(shuffled)
    assert run(a_rule, qualifying, earlier) == run(a_rule, dict(shuffled), earlier[::-1])


def test_who_stops_qualifying_is_held_and_then_released_with_the_clause_that_failed():
    quick = prior("ams1", PREFIXES[0], hours=3)
    recent = replace(prior("ams1", PREFIXES[1], hours=1), admitted_at=NOW - timedelta(hours=10))
    slow_once = measured("ams1", PREFIXES[0], member=1)
    outcome = decide(
        policy(rule()),
        {"slow": Evidence((), (slow_once, slow_once._replace(prefix=PREFIXES[1])))},
        [quick, recent],
        NOW,
    )
    assert [(r.prefix, r.because) for r in outcome.released] == [
        (PREFIXES[0], "require duty_cycle >= 60% (line 8)")
    ]
    (held,) = outcome.decisions
    assert (held.prefix, held.action, held.qualified_at) == (PREFIXES[1], "held", recent.qualified_at)
    assert held.because == "hold 2h (line 9); require duty_cycle >= 60% (line 8)"


def test_the_slowest_are_admitted_first():
    outcome = run(
        rule(per_run=2), {("fra2", PREFIXES[2]): 5, ("ams1", PREFIXES[1]): 9, ("ams1", PREFIXES[3]): 7}, []
    )
    assert [(d.pop, d.prefix) for d in outcome.decisions] == [("ams1", PREFIXES[3]), ("fra2", PREFIXES[2])]
    assert [(d.pop, d.prefix, d.because) for d in outcome.deferred] == [
        ("ams1", PREFIXES[1], "limit 2 (line 20)")
    ]


def test_of_two_rules_the_first_in_the_file_wins():
    first, second = rule(), replace(rule(), name="cubic", congestion_control="cubic")
    evidence = {"slow": Evidence((measured("ams1", PREFIXES[0]),), ())}
    outcome = decide(policy(first, second), evidence, [], NOW)
    assert [d.rule for d in outcome.decisions] == ["bbr"]


def test_a_rule_that_leaves_a_pop_or_the_file_releases_its_prefixes():
    key = ("ams1", PREFIXES[0])
    outcome = run(rule(pops=("fra2",)), {key: 1}, [prior(*key)])
    assert [r.because for r in outcome.released] == ["bbr does not apply in ams1 any more"]
    outcome = run(rule(), {}, [prior(*key, name="gone")])
    assert [r.because for r in outcome.released] == ["no rule covers it any more"]


def test_a_renamed_rule_keeps_its_prefixes_and_they_are_not_new():
    key = ("ams1", PREFIXES[0])
    then = prior(*key, name="before")
    outcome = run(rule(per_run=1), {key: 5, ("ams1", PREFIXES[1]): 9}, [then])
    assert [(d.prefix, d.action, d.admitted_at) for d in outcome.decisions] == [
        (PREFIXES[0], "kept", then.admitted_at),
        (PREFIXES[1], "added", NOW),
    ]
    assert not outcome.released


def test_another_measured_length_releases_at_once_so_that_no_hold_out_is_treated_by_what_covers_it():
    wide = ("ams1", "198.18.0.0/23")
    evidence = {"slow": Evidence((measured(*wide),), ())}
    other = replace(policy(rule()), selects=(replace(SELECT, prefix_length_ipv4=23),))
    outcome = decide(other, evidence, [prior("ams1", "198.18.1.0/24", hours=0.1)], NOW)
    assert [(r.prefix, r.because) for r in outcome.released] == [
        ("198.18.1.0/24", "slow measures by /23 now")
    ]
    assert [d.prefix for d in outcome.decisions] == ["198.18.0.0/23"]


def test_claims_are_in_address_order_and_carry_the_pops_threshold():
    key = [("ams1", "198.18.10.0/24"), ("ams1", "198.18.9.0/24"), ("fra2", "198.18.9.0/24")]
    outcome = run(rule(), dict.fromkeys(key, 1), [])
    assert claims(policy(rule()), outcome, "ams1") == [
        {"prefix": prefix, "congestion_control": "bbr", "min_bytes": 100_000, "ungated_fallback": True}
        for prefix in ("198.18.9.0/24", "198.18.10.0/24")
    ]
    assert claims(policy(rule()), outcome, "fra2") == [
        {"prefix": "198.18.9.0/24", "congestion_control": "bbr"}
    ]


@given(st.integers(0, 1_000_000))
def test_hold_out_grows_with_its_share_and_never_swaps(share):
    prefixes = [f"198.18.{i}.0/24" for i in range(256)]
    control = {p for p in prefixes if held_out("bbr", p, share)}
    assert control <= {p for p in prefixes if held_out("bbr", p, min(share + 50_000, 1_000_000))}


def test_hold_out_is_as_large_as_asked():
    draws = sum(held_out("bbr", f"2001:db8:{i:x}::/56", 100_000) for i in range(10_000))
    assert 880 <= draws <= 1120  # 1,000 expected; four standard deviations of a binomial are 120
