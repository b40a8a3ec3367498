"""The command of the laboratory, and the claims that an experiment is judged by."""

from dataclasses import replace

from click.testing import CliRunner
from tidegate_lab.__main__ import main
from tidegate_lab.direction import Counters
from tidegate_lab.experiments.loss import Outcome, claims
from tidegate_lab.transfers import Summary

COUNTERS = Counters(
    offered=10_000, lost=0, tail_dropped=0, delivered=10_000, late_mean_us=50, late_max_us=900
)


def outcome(loss, algorithm, median_s):
    counters = replace(COUNTERS, lost=round(COUNTERS.offered * loss))
    return Outcome(loss, algorithm, Summary(4, median_s, median_s, median_s), counters)


MEASURED = [
    outcome(0.0, "cubic", 0.78),
    outcome(0.0, "bbr", 0.80),
    outcome(0.01, "cubic", 8.2),
    outcome(0.01, "bbr", 0.90),
]


def test_the_claims_hold_for_what_was_measured_and_fail_one_by_one():
    assert all(claim.holds for claim in claims(MEASURED))
    for index, spoilt in (
        (0, replace(MEASURED[0], counters=replace(COUNTERS, late_mean_us=3000))),
        (1, replace(MEASURED[2], counters=replace(MEASURED[2].counters, lost=150))),
        (2, replace(MEASURED[0], times=Summary(4, 1.6, 1.6, 1.6))),
        (3, replace(MEASURED[2], times=Summary(4, 2.0, 2.0, 2.0))),
        (4, replace(MEASURED[3], times=Summary(4, 1.9, 1.9, 1.9))),
    ):
        outcomes = [
            spoilt if (one.loss, one.algorithm) == (spoilt.loss, spoilt.algorithm) else one
            for one in MEASURED
        ]
        assert [claim.holds for claim in claims(outcomes)] == [place != index for place in range(5)]


def test_without_root_the_laboratory_says_so(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = CliRunner().invoke(main, ["loss"])
    assert result.exit_code == 3
    assert "needs root" in result.stderr
