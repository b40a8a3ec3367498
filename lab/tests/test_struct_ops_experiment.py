"""The experiment with BBR that raises its pacing: the rule on numbers, and one case of it for real."""

import json
import os
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tidegate_edge.libbpf.library import Unavailable
from tidegate_lab.__main__ import main
from tidegate_lab.algorithms import RAISE, registered
from tidegate_lab.direction import Counters
from tidegate_lab.experiments import struct_ops
from tidegate_lab.experiments.struct_ops import ALGORITHMS, CONDITIONS, FREE, Condition, Outcome
from tidegate_lab.experiments.struct_ops_rule import claims, figures
from tidegate_lab.sender import Told
from tidegate_lab.stall import stalled

ON_TIME = Counters(offered=1000, lost=0, tail_dropped=0, delivered=1000, late_mean_us=50.0, late_max_us=900.0)
STARVED = {
    "bbr": 30.0,
    "bbr_wrapped": 33.0,
    "bbr_raise": 70.0,
    "bbr_raise_bound": 60.0,
    "cubic": 60.0,
}  # Mbit/s


def as_hoped():
    return [
        Outcome(
            condition,
            algorithm,
            seed,
            93.0 if condition in FREE else STARVED[algorithm] + seed,
            (0.2, 0.3, 0.4),
            Told(10_000, 50, [0.9, 1.1], 5000, 20),
            condition.off_ms / (condition.on_ms + condition.off_ms) if condition.off_ms else 0.0,
            ON_TIME,
        )
        for condition in CONDITIONS
        for algorithm in ALGORITHMS
        for seed in (1, 2, 3)
    ]


def changed(condition, algorithm, **change):
    return [
        replace(each, **change) if (each.condition, each.algorithm) == (condition, algorithm) else each
        for each in as_hoped()
    ]


def hold(outcomes):
    return [claim.holds for claim in claims(outcomes)]


def test_figures_are_medians_over_the_seeds_and_say_how_far_they_spread():
    found = {(each.condition, each.algorithm): each for each in figures(as_hoped())}
    assert len(found) == len(CONDITIONS) * len(ALGORITHMS)
    one = found[Condition(15, 15), "bbr_raise"]
    assert (one.mbit_s, one.mbit_s_between) == (72.0, (71.0, 73.0))
    assert (one.p5_s, one.p50_s, one.p95_s) == (0.2, 0.3, 0.4)
    assert (one.retransmitted, one.share, one.raised) == (0.005, 1.0, 0.004)


def test_the_rule_holds_of_what_was_hoped_for():
    assert hold(as_hoped()) == [True] * 12


@pytest.mark.parametrize(
    ("condition", "algorithm", "change", "failing"),
    [
        (FREE[0], "cubic", {"link": replace(ON_TIME, late_mean_us=1500.0)}, 0),
        (Condition(15, 15), "cubic", {"stood": 0.3}, 1),
        (FREE[1], "bbr", {"mbit_s": 87.0}, 2),
        (Condition(20, 10), "bbr_wrapped", {"mbit_s": 300.0}, 3),
        (Condition(10, 20), "bbr_raise", {"mbit_s": 40.0}, 4),
        (Condition(15, 15, loss=0.01), "bbr_raise", {"seconds": (0.3, 0.4, 0.5)}, 5),
        (FREE[2], "bbr_raise", {"mbit_s": 85.0}, 6),
        (FREE[0], "bbr_raise", {"told": Told(10_000, 160, [], 5000, 20)}, 7),
        (Condition(20, 10), "bbr_raise", {"told": Told(10_000, 400, [], 5000, 20)}, 7),
        (Condition(15, 15, buffer=0.5), "bbr_raise_bound", {"mbit_s": 40.0}, 8),
        (Condition(10, 20), "bbr_raise_bound", {"told": Told(10_000, 400, [], 5000, 20)}, 11),
    ],
)
def test_a_number_that_breaks_the_rule_fails_its_claim_alone(condition, algorithm, change, failing):
    assert hold(changed(condition, algorithm, **change)) == [number != failing for number in range(12)]


def test_less_than_two_runs_are_refused():
    assert CliRunner().invoke(main, ["struct_ops", "--seeds", "1"]).exit_code == (
        2 if os.geteuid() == 0 else 3
    )


@pytest.mark.root
@pytest.mark.parametrize(("spoilt", "exit_code"), [(False, 0), (True, 1)])
def test_the_command_shows_every_case_and_says_by_its_exit_code_whether_the_rule_holds(
    monkeypatch, spoilt, exit_code
):
    outcomes = changed(CONDITIONS[0], "cubic", stood=0.5) if spoilt else as_hoped()
    monkeypatch.setattr(struct_ops, "measure", lambda seeds: outcomes if seeds == 3 else [])
    shown = CliRunner().invoke(main, ["struct_ops", "--seeds", "3"])
    assert shown.exit_code == exit_code
    lines = shown.output.splitlines()
    assert len(lines) == 1 + len(CONDITIONS) * len(ALGORITHMS) + 12
    assert lines[-11].startswith("FAILS" if spoilt else "holds")
    document = json.loads(CliRunner().invoke(main, ["struct_ops", "--seeds", "3", "--json"]).output)
    assert len(document["figures"]) == len(CONDITIONS) * len(ALGORITHMS)
    assert len(document["outcomes"]) == len(outcomes)


@pytest.mark.root
def test_a_case_is_measured_on_a_sender_whose_cpu_is_taken_away():
    try:
        with registered():
            pass
    except (Unavailable, RuntimeError) as reason:
        pytest.skip(str(reason))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the sender needs a CPU of its own")
    condition = Condition(10, 10)
    before = os.sched_getaffinity(0)
    with struct_ops.laboratory() as made:
        found = struct_ops.measure_case(made, condition, RAISE, seed=7)
    assert os.sched_getaffinity(0) == before
    assert 0 < found.stood < 1
    assert found.mbit_s > 0
    assert len(found.seconds) == 3
    assert found.told.acks >= found.told.raised
    assert found.told.shares
    assert found.link.delivered > 2000  # three objects of 1 MB


@pytest.mark.root
def test_a_cpu_stands_for_the_longer_the_more_of_it_is_taken():
    cpu = min(os.sched_getaffinity(0))

    def share(on_ms, off_ms):
        with stalled(cpu, on_ms, off_ms, 1) as stall:
            time.sleep(0.6)  # is what is measured
            return stall.share()

    assert 0 < share(20, 2) < share(5, 20) < 1
