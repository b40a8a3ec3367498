"""Incumbents go by their own bounds, and a rule has nothing outside its schedule."""

from dataclasses import replace
from datetime import timedelta

import pytest
from decision_inputs import (
    HOLD,
    NOW,
    PREFIXES,
    SELECT,
    WINDOWS,
    decided,
    keys,
    measured,
    policy,
    prior,
    rule,
)
from hypothesis import given
from hypothesis import strategies as st
from tidegate.told import claims
from tidegate_dsl.model import Active, Bound, Clause, Condition

DUTY = Clause(8, "require duty_cycle >= 60% leave < 50%")
NEAR = Clause(10, "exclude min_rtt < 10 ms leave < 8 ms")
STICKY = replace(
    SELECT,
    min_duty_cycle=Bound(600_000, DUTY, 500_000),
    exclude=(Condition("min_rtt", "<", 10_000, NEAR, 8_000),),
)
SCHEDULE = Clause(12, "active 2026-11-20T00:00Z until 2026-11-20T06:00Z")
KEY = ("ams1", PREFIXES[0])


def member(windows):
    return (1 << windows) - 1


def run(figures, *, hours=1.0):
    before = [prior(*KEY, hours=hours)]
    return decided(policy(rule(), select=STICKY), before, previous=[measured(*KEY, **figures)])


@given(st.integers(0, WINDOWS), st.integers(7_000, 11_000))
def test_an_incumbent_is_kept_while_it_fulfils_the_leave_bounds(windows, min_rtt):
    outcome = run({"member": member(windows), "min_rtt": min_rtt}, hours=3)
    stays = windows * 2 >= WINDOWS and min_rtt >= 8_000
    if stays:
        (kept,) = outcome.decisions
        assert (kept.action, kept.qualified_at) == ("kept", NOW)
    else:
        (gone,) = outcome.released
        assert gone.because == ("require duty_cycle >= 60% leave < 50% (line 8)" if windows * 2 < WINDOWS else
                                "exclude min_rtt < 10 ms leave < 8 ms (line 10)")  # fmt: skip
        assert not gone.withdrawn


def test_an_incumbent_below_the_leave_bound_is_held_from_the_last_time_it_stayed():
    outcome = run({"member": member(35), "min_rtt": 20_000}, hours=1)
    (held,) = outcome.decisions
    assert (held.action, held.qualified_at) == ("held", NOW - timedelta(hours=1))
    assert held.because == f"{HOLD.text} (line 9); {DUTY.text} (line 8)"


def test_the_leave_bound_lets_nobody_in():
    outcome = decided(policy(rule(), select=STICKY), previous=[measured(*KEY, member=member(40))])
    assert not outcome.decisions


def test_a_renamed_rule_keeps_what_stays_and_another_rules_prefix_must_qualify():
    figures = measured(*KEY, member=member(40), min_rtt=20_000)
    renamed = decided(policy(rule(name="bbr_now"), select=STICKY), [prior(*KEY)], previous=[figures])
    assert [(d.rule, d.action) for d in renamed.decisions] == [("bbr_now", "kept")]
    other = replace(prior(*KEY, name="cubic"), select="other")
    moved = decided(policy(rule(), select=STICKY), [other], previous=[figures])
    assert not moved.decisions


@pytest.mark.parametrize(
    ("minutes", "applies"), [(-361, False), (-360, True), (-1, True), (0, False), (90, False)]
)
def test_a_rule_has_prefixes_only_within_its_schedule(minutes, applies):
    active = Active(NOW - timedelta(hours=6), NOW, SCHEDULE)
    a_policy = policy(rule(active=active))
    at = NOW + timedelta(minutes=minutes)
    entrant = ("fra2", PREFIXES[1])
    outcome = decided(a_policy, [prior(*KEY)], qualifying=[measured(*KEY), measured(*entrant)], at=at)
    assert keys(outcome.decisions) == ({KEY, entrant} if applies else set())
    assert [(r.because, r.withdrawn) for r in outcome.released] == (
        [] if applies else [("active 2026-11-20T00:00Z until 2026-11-20T06:00Z (line 12)", True)]
    )
    assert not outcome.deferred


def test_a_later_rule_takes_over_what_an_ended_one_had():
    ended = rule(name="trial", active=Active(NOW - timedelta(hours=6), NOW, SCHEDULE))
    a_policy = policy(ended, replace(rule(), congestion_control="cubic"))
    outcome = decided(a_policy, [prior(*KEY, name="trial")], qualifying=[measured(*KEY)])
    assert [(d.rule, d.action) for d in outcome.decisions] == [("bbr", "kept")]
    assert not outcome.released
    assert claims(a_policy, outcome, "ams1")[0]["congestion_control"] == "cubic"
