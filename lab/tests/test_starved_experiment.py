"""What the experiment with a starved sender claims of its numbers; the sender itself is run by hand."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tidegate_lab import uml
from tidegate_lab.__main__ import main
from tidegate_lab.experiments.starved import HEALTHY, SLICED, Outcome, claims
from tidegate_lab.guest import READY
from tidegate_lab.namespaces import namespace

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


def package(directory, script):
    """In place of a kernel, what one may do."""
    kernel = directory / "usr/bin/linux.uml"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    (directory / "usr/lib/uml/modules/6.1/kernel").mkdir(parents=True)
    return directory


@pytest.mark.root
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo no memory; exit 7", "the guest ended with code 7 before it was ready"),
        ("echo no memory; exec sleep 600", "the guest was not ready within 1 s"),
    ],
)
def test_a_guest_that_does_not_start_is_an_error_that_names_its_log(tmp_path, monkeypatch, script, says):
    monkeypatch.setattr(uml, "_BOOT_S", 1)
    result = CliRunner().invoke(main, ["starved", "--package", str(package(tmp_path, script))])
    assert result.exit_code == 3
    assert says in result.output
    log = Path(result.output.rpartition("what the guest said is in ")[2].strip())
    assert "no memory" in log.read_text()
    log.unlink()


@pytest.mark.root
def test_a_helper_that_outlives_the_guest_holds_nobody_up(tmp_path):
    script = f"setsid sleep 600 & echo {READY}; wait"
    with namespace("sender") as sender, uml.guest(sender, package(tmp_path, script)) as guest:
        begun = time.monotonic()
    assert time.monotonic() - begun < 60
    assert not guest.log.exists()
