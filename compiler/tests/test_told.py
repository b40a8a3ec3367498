"""What hosts are told: windows as they stand merge with what is selected, and learning knows its destinations."""

from dataclasses import replace

import pytest
from decision_inputs import CLAUSE, NOW, PREFIXES, decided, measured, policy, rule
from tidegate.told import claims, control, learn_settings
from tidegate_dsl.model import Experiment, Initcwnd, Learn


def window(*prefixes, segments=30, pops=("ams1",), name="wide"):
    return Initcwnd(name, CLAUSE, prefixes, pops, segments)


def test_a_window_for_a_selected_prefix_is_one_claim_with_its_algorithm():
    a_policy = policy(rule(), initcwnds=(window(PREFIXES[1], "0.0.0.0/0", "::/0"),))
    outcome = decided(a_policy, qualifying=[measured("ams1", PREFIXES[1]), measured("fra2", PREFIXES[1])])
    steered = {"congestion_control": "bbr", "min_bytes": 100_000, "ungated_fallback": True}
    assert claims(a_policy, outcome, "ams1") == [
        {"prefix": "0.0.0.0/0", "initcwnd": 30},
        {"prefix": PREFIXES[1], "initcwnd": 30, **steered},
        {"prefix": "::/0", "initcwnd": 30},
    ]
    assert claims(a_policy, outcome, "fra2") == [{"prefix": PREFIXES[1], "congestion_control": "bbr"}]


def test_a_held_out_prefix_keeps_its_window_and_gets_no_algorithm():
    a_policy = policy(rule(hold_out_ppm=1_000_000), initcwnds=(window(PREFIXES[1]),))
    outcome = decided(a_policy, qualifying=[measured("ams1", PREFIXES[1])])
    assert claims(a_policy, outcome, "ams1") == [{"prefix": PREFIXES[1], "initcwnd": 30}]


def test_control_hosts_are_told_all_but_what_the_rule_on_trial_claims():
    a_policy = policy(
        rule(pops=("ams1",)),
        initcwnds=(window(PREFIXES[1], "::/0"),),
        experiments=(Experiment("trial", CLAUSE, "bbr", 250_000, 0),),
    )
    ams1, fra2 = a_policy.fleet.pops
    outcome = decided(a_policy, qualifying=[measured("ams1", PREFIXES[1]), measured("ams1", PREFIXES[2])])
    told, hosts = control(a_policy, outcome, ams1, NOW)
    assert told == [{"prefix": PREFIXES[1], "initcwnd": 30}, {"prefix": "::/0", "initcwnd": 30}]
    assert len(hosts) == 1
    assert set(hosts) < set(ams1.hosts)
    assert control(a_policy, outcome, fra2, NOW) == ([], [])


def test_no_host_is_control_of_a_rule_that_claims_nothing():
    a_policy = policy(
        rule(), initcwnds=(window("::/0"),), experiments=(Experiment("trial", CLAUSE, "bbr", 250_000, 0),)
    )
    assert control(a_policy, decided(a_policy), a_policy.fleet.pops[0], NOW) == ([], [])


def learning(toward):
    """Learning in one POP, without what a block need not say."""
    return Learn("back_office", CLAUSE, ("ams1",), 500_000, 10**6, 10, 100, 600 * 10**6, toward, 0, None)


@pytest.mark.parametrize(
    ("toward", "destinations"),
    [
        (("peer_pops",), ["192.0.2.64/26"]),
        (("origins",), ["198.18.255.0/24"]),
        (("origins", "peer_pops"), ["192.0.2.64/26", "198.18.255.0/24"]),
    ],
)
def test_learned_windows_go_where_the_block_says(toward, destinations):
    learn = learning(toward)
    settings = learn_settings(policy(learns=(learn,)), "ams1")
    assert settings is not None
    assert settings["toward"] == destinations
    assert learn_settings(policy(learns=(learn,)), "fra2") is None


@pytest.mark.parametrize(
    ("hold_out_ppm", "initrwnd", "told"),
    [
        (0, None, {}),
        (100_000, None, {"hold_out_ppm": 100_000}),
        (0, 300, {"initrwnd": 300}),
        (1, 1, {"hold_out_ppm": 1, "initrwnd": 1}),
    ],
)
def test_what_a_learn_block_need_not_say_is_told_where_it_does(hold_out_ppm, initrwnd, told):
    learn = replace(learning(("origins",)), hold_out_ppm=hold_out_ppm, initrwnd=initrwnd)
    settings = learn_settings(policy(learns=(learn,)), "ams1")
    assert settings is not None
    assert {key: settings.get(key) for key in ("hold_out_ppm", "initrwnd") if key in settings} == told
