"""The experiment on learned windows: its claims hold on real links, and each of them can fail."""

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner
from tidegate_lab.__main__ import main
from tidegate_lab.direction import Counters
from tidegate_lab.experiments import riptide
from tidegate_lab.experiments.riptide import ARMS, ROUND_TRIP_S, SIZES, Outcome, Report, UnderLoss, claims
from tidegate_lab.transfers import Summary, fetch

LAB = Path(__file__).parents[1]
COUNTERS = Counters(offered=9000, lost=0, tail_dropped=0, delivered=9000, late_mean_us=60, late_max_us=900)
WINDOWS = dict(zip(ARMS, (10, 50, 100, 25, 100), strict=True))
ROUND_TRIPS = dict(zip(ARMS, ((4, 5, 5), (2, 3, 3), (2, 2, 3), (3, 4, 4), (2, 2, 3)), strict=True))


def outcome(arm, size, round_trips):
    seconds = round_trips * ROUND_TRIP_S
    return Outcome(arm, size, WINDOWS[arm], Summary(3, seconds, seconds, seconds))


MEASURED = Report(
    [outcome(arm, size, ROUND_TRIPS[arm][at]) for arm in ARMS for at, size in enumerate(SIZES)],
    UnderLoss(largest_cwnd=160, before=100, after=20, expired=True),
    [dict.fromkeys(("plain", "bulk", "lossy"), COUNTERS)] * 5,
)


def with_outcome(arm, size, **changes):
    return replace(
        MEASURED,
        outcomes=[
            replace(each, **changes) if (each.arm, each.size) == (arm, size) else each
            for each in MEASURED.outcomes
        ],
    )


def with_path(**changes):
    return replace(MEASURED, under_loss=replace(MEASURED.under_loss, **changes))


SLOW = Summary(3, 0.7, 0.7, 0.7)


@pytest.mark.parametrize(
    ("spoilt", "failing"),
    [
        (MEASURED, set()),
        (
            replace(MEASURED, counters=[*MEASURED.counters, {"bulk": replace(COUNTERS, late_mean_us=3000)}]),
            {0},
        ),
        (with_outcome("riptide", 100_000, times=SLOW), {1, 2}),
        (with_outcome("riptide", 60_000, times=SLOW), {2}),
        (with_outcome("riptide", 150_000, initcwnd=20), {3}),
        (with_path(largest_cwnd=90), {4}),
        (with_path(before=120), {4}),
        (with_path(after=51), {5}),
        (with_path(expired=False), {6}),
    ],
)
def test_the_claims_hold_for_what_was_measured_and_fail_one_by_one(spoilt, failing):
    assert {place for place, claim in enumerate(claims(spoilt)) if not claim.holds} == failing


@contextmanager
def standing(emulator):
    """The emulator's process stands, but for a moment now and then, while the block runs."""
    over = Event()

    def stand():
        while not over.wait(0.01):
            emulator.send_signal(signal.SIGSTOP)
            over.wait(0.14)
            emulator.send_signal(signal.SIGCONT)

    with ThreadPoolExecutor(1) as thread:
        stopping = thread.submit(stand)
        try:
            yield
        finally:
            over.set()
            stopping.result()


@pytest.mark.root
def test_a_part_whose_link_stood_is_measured_again(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(LAB))  # for the server of objects, a process
    late = []

    def part(lab):
        plain = lab.links["plain"]
        with nullcontext() if late else standing(plain._emulator):
            fetch([lab.fetches("default", "60000", 1)])
        late.append(plain.counters()[0].late_mean_us)
        return len(late)

    tries, counters = riptide._on_time(part)
    assert late[0] > 1000
    assert tries == len(late) > 1
    assert counters["plain"].delivered > 40  # packets of 60 kB
    assert counters["bulk"].offered == 0


@pytest.mark.root
@pytest.mark.parametrize(("report", "exit_code"), [(MEASURED, 0), (with_path(expired=False), 1)])
def test_the_command_says_how_late_each_link_was_at_most(monkeypatch, report, exit_code):
    late = {"plain": COUNTERS, "bulk": replace(COUNTERS, late_mean_us=444), "lossy": COUNTERS}
    monkeypatch.setattr(riptide, "measure", lambda: replace(report, counters=[late, *report.counters]))
    shown = CliRunner().invoke(main, ["riptide"])
    assert shown.exit_code == exit_code
    lines = shown.output.splitlines()
    assert len(lines) == 1 + len(ARMS) * len(SIZES) + 1 + len(late) + 7
    assert "link plain: late at most 60 us on average" in lines
    assert "link bulk: late at most 444 us on average" in lines
    assert lines[-1] == f"{'FAILS' if exit_code else 'holds'}  it expires"


@pytest.mark.root
@pytest.mark.timeout(480)  # parts are measured again while others take the CPU from the links
def test_a_learned_window_saves_round_trips_and_follows_the_path():
    command = (LAB.parent / "docs/riptide.md").read_text()
    (example,) = re.findall(r"^PYTHONPATH=lab python (-m tidegate_lab riptide .*)$", command, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, *example.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=LAB.parent,
        env={"PYTHONPATH": str(LAB), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        timeout=420,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert {claim["holds"] for claim in report["claims"]} == {True}
    median = {(each["arm"], each["size"]): each["times"]["median_s"] for each in report["outcomes"]}
    assert set(median) == {(arm, size) for arm in ARMS for size in SIZES}
    for size in SIZES:
        assert median["riptide", size] <= median["default", size] - ROUND_TRIP_S
    assert report["under_loss"]["after"] < report["under_loss"]["before"] == 100
