"""Draws of an experiment: which hosts are control, and when the rule is off."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from decision_inputs import CLAUSE, NOW, policy, rule
from hypothesis import given
from hypothesis import strategies as st
from tidegate.experiment import control_hosts, drawn, experiment_of, is_off
from tidegate_dsl.model import Active, Experiment

PERIOD = timedelta(hours=6)
names = st.from_regex(r"[a-z]{1,6}-edge[0-9]{1,2}", fullmatch=True)
shares = st.integers(1, 999_999)


def trial(hosts_ppm=0, period=timedelta(0), name="trial"):
    return Experiment(name, CLAUSE, "bbr", hosts_ppm, period // timedelta(microseconds=1))


@given(st.sets(names, max_size=30), shares)
def test_as_many_hosts_are_control_as_the_share_says_and_never_all(hosts, share):
    control = drawn(trial(share), hosts)
    expected = 0 if len(hosts) < 2 else max(1, share * len(hosts) // 1_000_000)
    assert len(control) == expected
    assert set(control) <= hosts
    assert not hosts or len(control) < len(hosts)
    assert list(control) == sorted(control)


@given(st.sets(names, min_size=2, max_size=30), names, shares)
def test_a_host_that_is_added_moves_one_other_at_most(hosts, added, share):
    before = set(drawn(trial(share), hosts))
    after = set(drawn(trial(share), hosts | {added}))
    assert len((before ^ after) - {added}) <= 1


@given(st.lists(names, min_size=2, max_size=30, unique=True), shares)
def test_the_draw_is_by_the_digest_alone(hosts, share):
    control = drawn(trial(share), hosts)
    assert control == drawn(trial(share), hosts[::-1])
    digest = {host: hashlib.sha256(f"trial\n{host}".encode()).hexdigest() for host in hosts}
    assert max(digest[host] for host in control) < min(digest[host] for host in hosts if host not in control)


@given(
    st.integers(0, 4 * 10**9),
    st.sampled_from(["ams1", "fra2", "sin1"]),
    st.integers(600, 7 * 86_400).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_of_each_pair_of_periods_the_rule_is_off_in_one(second, pop, period):
    pair = timedelta(seconds=second) // (2 * period)
    start = datetime(1970, 1, 1, tzinfo=UTC) + pair * 2 * period
    before, second_period = start + period - timedelta(seconds=1), start + period
    off = [is_off(trial(period=period), pop, at) for at in (start, before, second_period)]
    assert off[0] == off[1] != off[2]


def test_the_order_within_pairs_is_drawn_anew_and_by_pop():
    starts = [NOW + pair * 2 * PERIOD for pair in range(64)]
    orders = {
        pop: [is_off(trial(period=PERIOD), pop, at) for at in starts] for pop in ("ams1", "fra2", "sin1")
    }
    assert all(10 < sum(order) < 54 for order in orders.values())  # 32 expected; 5.5 standard deviations
    assert len({tuple(order) for order in orders.values()}) == 3


def test_while_the_rule_is_off_all_hosts_are_control():
    hosts = ("b", "a", "c")
    both = trial(340_000, PERIOD)
    seen = {control_hosts(both, "ams1", hosts, NOW + n * PERIOD) for n in range(4)}
    assert seen == {("a", "b", "c"), drawn(both, hosts)}
    assert len(drawn(both, hosts)) == 1
    assert control_hosts(trial(period=PERIOD), "ams1", hosts, NOW) in {("a", "b", "c"), ()}


@pytest.mark.parametrize(
    ("pop", "hours", "runs"), [("ams1", 0, True), ("fra2", 0, False), ("ams1", 1, False), ("ams1", -3, False)]
)
def test_it_runs_where_and_while_its_rule_applies(pop, hours, runs):
    active = Active(NOW - timedelta(hours=2), NOW + timedelta(hours=1), CLAUSE)
    a_policy = policy(rule(pops=("ams1",), active=active), experiments=(trial(500_000),))
    found = experiment_of(a_policy, pop, NOW + timedelta(hours=hours))
    assert (found is not None) == runs
