"""Windows are smoothed as dsl/SPEC.md says, stay within their bounds, expire, and leave the held out alone."""

import json
from dataclasses import replace
from fractions import Fraction
from ipaddress import ip_network
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.riptide import Observation, State, as_document, claims, from_document, learn
from tidegate_edge.riptide.hold_out import draw_ppm
from tidegate_edge.riptide.observe import Connections
from tidegate_edge.riptide.state import Mean
from tidegate_edge.riptide.windows import MAX_DESTINATIONS, fold, smooth
from tidegate_edge.steer.steering import Learn

HOSTS = [ip_network(f"192.0.2.{number}/32") for number in range(1, 4)] + [ip_network("2001:db8::1/128")]
TOWARD = (ip_network("192.0.2.0/24"), ip_network("2001:db8::/32"))
SETTINGS = Learn(TOWARD, 10, 100, 500_000, 1_000_000, 600_000_000)
NOBODY = Observation(Connections(*(np.empty(0, np.uint64),) * 10))

bounds = st.tuples(st.integers(1, 200), st.integers(1, 200)).map(sorted)
policies = st.builds(
    lambda bound, weight, expire, share: Learn(TOWARD, *bound, weight, 1_000_000, expire, share),
    bounds,
    st.integers(1, 1_000_000),
    st.integers(1_000_000, 10_000_000),
    st.sampled_from([0, 100_000, 999_999]),
)
windows = st.lists(st.integers(0, 5000), min_size=1, max_size=5)
intervals = st.lists(
    st.tuples(st.integers(1, 12_000_000), st.dictionaries(st.sampled_from(HOSTS), windows)), max_size=12
)


def mean(values):
    return Mean(sum(values), len(values))


class Reference:
    """Section 7 of the specification, word by word, in fractions."""

    def __init__(self, policy):
        self.policy, self.windows, self.at = policy, {}, {}

    def interval(self, now, observed):
        weight = Fraction(self.policy.smooth_ppm, 1_000_000)
        for host, values in observed.items():
            w = Fraction(sum(values), len(values))
            if host in self.windows:
                w = weight * w + (1 - weight) * self.windows[host]
            w = floor(w)
            w = max(w, self.policy.initcwnd_min)
            w = min(w, self.policy.initcwnd_max)
            self.windows[host], self.at[host] = w, now
        for host in list(self.windows):
            if now - self.at[host] >= self.policy.expire_us:
                del self.windows[host], self.at[host]


@given(policies, intervals)
@settings(max_examples=300, deadline=None)
def test_what_is_learned_is_what_the_specification_says(policy, history):
    reference, state, now = Reference(policy), State(settings=policy), 0
    for wait, observed in history:
        now += wait
        state = fold(state, {host: mean(values) for host, values in observed.items()}, policy, now)
        reference.interval(now, observed)
        assert {host: each.window for host, each in state.learned.items()} == reference.windows
        given_out = claims(state, policy)
        assert all(policy.initcwnd_min <= each <= policy.initcwnd_max for each in given_out.values())
        assert set(given_out) == {h for h in reference.windows if draw_ppm(h) >= policy.hold_out_ppm}


@given(policies, st.integers(1, 200), windows, windows)
@settings(deadline=None)
def test_smoothing_is_monotone_and_never_overshoots(policy, before, one, other):
    before = min(max(before, policy.initcwnd_min), policy.initcwnd_max)
    low, high = sorted((mean(one), mean(other)), key=lambda each: Fraction(each.total, each.count))
    assert smooth(before, low, policy) <= smooth(before, high, policy)
    assert smooth(before, low, policy) <= smooth(min(before + 1, policy.initcwnd_max), low, policy)
    after = smooth(before, low, policy)
    ends = sorted((Fraction(before), Fraction(low.total, low.count)))
    assert after in (policy.initcwnd_min, policy.initcwnd_max) or floor(ends[0]) <= after <= ends[1]


def test_after_a_step_five_observations_make_97_per_cent_with_a_weight_of_one_half():
    state = fold(State(settings=SETTINGS), {HOSTS[0]: Mean(100, 1)}, SETTINGS, 0)
    seen = []
    for second in range(1, 6):
        state = fold(state, {HOSTS[0]: Mean(10, 1)}, SETTINGS, second * 1_000_000)
        seen.append(state.learned[HOSTS[0]].window)
    assert seen == [55, 32, 21, 15, 12]


def test_it_expires_without_observations_and_begins_anew():
    state = fold(State(settings=SETTINGS), {HOSTS[0]: Mean(80, 1)}, SETTINGS, 5)
    assert claims(learn(state, NOBODY, SETTINGS, 5 + 599_999_999), SETTINGS) == {HOSTS[0]: 80}
    state = learn(state, NOBODY, SETTINGS, 5 + 600_000_000)
    assert claims(state, SETTINGS) == {}
    assert state.counts["expired"] == 1
    assert fold(state, {HOSTS[0]: Mean(20, 1)}, SETTINGS, 700_000_000).learned[HOSTS[0]].window == 20


def test_the_oldest_make_room_and_are_counted():
    hosts = [ip_network((192 << 24 | number, 32)) for number in range(MAX_DESTINATIONS + 10)]
    everywhere = replace(SETTINGS, toward=(ip_network("192.0.0.0/8"),))
    state = State(settings=everywhere)
    for begin in range(0, len(hosts), 512):
        seen = dict.fromkeys(hosts[begin : begin + 512], Mean(20, 1))
        state = fold(state, seen, everywhere, begin)
    assert len(state.learned) == MAX_DESTINATIONS
    assert state.counts["evicted"] == 10
    assert set(hosts) - set(state.learned) <= set(hosts[:512])


def test_the_hold_out_is_stable_nested_and_of_the_share_that_is_asked_for():
    hosts = [ip_network((10 << 24 | number, 32)) for number in range(20_000)]
    draws = [draw_ppm(host) for host in hosts]
    # printf 'tidegate riptide hold-out\n192.0.2.1/32' | sha256sum: the same on every host, in every release.
    assert draw_ppm(ip_network("192.0.2.1/32")) == int("07a0c1c8f0352fbd", 16) * 1_000_000 >> 64
    assert 0 <= min(draws) <= max(draws) < 1_000_000
    for share in (0.05, 0.1, 0.5):
        held = sum(draw < share * 1_000_000 for draw in draws)
        deviation = (len(hosts) * share * (1 - share)) ** 0.5
        assert abs(held - len(hosts) * share) < 5 * deviation


def test_the_held_out_are_observed_and_get_nothing():
    held_out = replace(SETTINGS, hold_out_ppm=999_999)
    state = fold(State(settings=held_out), {host: Mean(40, 1) for host in HOSTS}, held_out, 0)
    assert len(state.learned) == len(HOSTS)
    assert claims(state, held_out) == {}
    assert {each["held_out"] for each in as_document(state, held_out, 0)["destinations"]} == {True}
    assert set(claims(state, SETTINGS)) == set(HOSTS)


def test_another_generation_keeps_what_it_allows():
    state = fold(State(settings=SETTINGS), {host: Mean(80, 1) for host in HOSTS}, SETTINGS, 0)
    narrower = replace(SETTINGS, toward=(ip_network("192.0.2.2/31"),), initcwnd_max=50)
    assert claims(state, narrower) == {HOSTS[1]: 50, HOSTS[2]: 50}
    assert claims(learn(state, NOBODY, narrower, 1), narrower) == {HOSTS[1]: 50, HOSTS[2]: 50}


@given(policies, st.dictionaries(st.sampled_from(HOSTS), windows), st.integers(0, 999_999))
@settings(deadline=None)
def test_a_document_brings_the_state_back(policy, observed, age):
    state = fold(State(settings=policy), {host: mean(values) for host, values in observed.items()}, policy, 7)
    document = json.loads(json.dumps(as_document(state, policy, 7 + age)))
    back = from_document(document, policy, 1_000_000_000)
    assert claims(back, policy) == claims(state, policy)
    assert {each.observed_us for each in back.learned.values()} <= {1_000_000_000 - age}
    assert as_document(back, policy, 1_000_000_000)["destinations"] == document["destinations"]


def test_a_document_is_held_against_the_settings_of_now():
    state = fold(State(settings=SETTINGS), {host: Mean(80, 1) for host in HOSTS}, SETTINGS, 0)
    document = as_document(state, SETTINGS, 0)
    assert claims(from_document(document, replace(SETTINGS, initcwnd_max=50), 0), SETTINGS) == dict.fromkeys(
        HOSTS, 50
    )
    assert from_document(as_document(state, SETTINGS, 600_000_000), SETTINGS, 0).learned == {}
    assert from_document(document, SETTINGS, 0, by="prefix") == State(by="prefix")


@pytest.mark.parametrize(
    "spoilt",
    [
        {},
        [],
        None,
        {"by": "host"},
        {"by": "host", "destinations": None},
        {"by": "host", "destinations": [{}]},
        {"by": "host", "destinations": [{"prefix": "192.0.2.1/24", "initcwnd": 1, "age_us": 0}]},
        {"by": "host", "destinations": [{"prefix": "192.0.2.1/32", "initcwnd": "x", "age_us": 0}]},
    ],
)
def test_a_damaged_document_is_refused_with_a_way_out(spoilt):
    with pytest.raises(Failure, match="learned windows") as caught:
        from_document(spoilt, SETTINGS, 0)
    assert caught.value.help == "delete the state; the windows are learned again"
