"""What the experiment with a starved sender claims of its numbers; the sender itself is run by hand."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from tidegate_lab.__main__ import main
from tidegate_lab.experiments.starved import HEALTHY, SLICED, Outcome, claims

COLLAPSED = {
    0: 94.0,
    1.5: 91.0,
    3: 92.0,
    6: 86.0,
    10: 66.0,
    15: 22.0,
    20: 2.0,
}  # Mbit/s of BBR by what it stands


def as_measured():
    sliced = [
        Outcome(case, COLLAPSED[case.off_ms], 90, 80, 30 if case.off_ms >= 15 else 0, 1.0)
        if case.algorithm == "bbr"
        else Outcome(case, 85.0, 90, 0, 0, None)
        for case in SLICED
    ]
    return [*sliced, *(Outcome(case, 1.9, 90, 80, 0, 2.0) for case in HEALTHY)]


def hold(outcomes):
    return [claim.holds for claim in claims(outcomes)]


def test_the_claims_hold_of_what_was_measured():
    assert hold(as_measured()) == [True] * 4


@pytest.mark.parametrize(
    ("place", "change", "failing"),
    [
        (1, {"mbit_s": 50.0}, 0),
        (13, {"mbit_s": 20.0}, 1),
        (-1, {"starved": 4}, 2),
        (1, {"starved": 4}, 2),
        (13, {"starved": 15}, 3),
        (11, {"judged": 0, "starved": 0}, 3),
    ],
)
def test_a_number_that_contradicts_a_claim_fails_it(place, change, failing):
    outcomes = as_measured()
    outcomes[place] = replace(outcomes[place], **change)
    assert hold(outcomes) == [number != failing for number in range(4)]


@pytest.mark.root
def test_a_laboratory_without_user_mode_linux_says_what_is_missing(tmp_path):
    result = CliRunner().invoke(main, ["starved", "--package", str(tmp_path)])
    assert result.exit_code == 3
    assert f"no user-mode-linux in {tmp_path}" in result.output
