"""`tidegate test`: verdicts, reasons and reports, on membership strings and on telemetry of a simulated fleet."""

import json
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tidegate.cli import main
from tidegate.judged import judged, misses
from tidegate_dsl.model import Bound, Clause, Rank, Select, missed

ROOT = Path(__file__).resolve().parents[2]
POLICY = """edition 2026.1
inventory "inventory"

select slow {
  measure  delivery_rate by prefix /24 /56
  from     traffic client where bytes_acked >= 100 KB and not app_limited
  over     1h step 5m
  rank     bottom 20% of pop
  require  duty_cycle >= 60% leave < 40%
  require  flap_rate <= 10%
  require  windows >= 10
  require  samples >= 20 per window
  exclude  min_rtt < 10 ms
  exclude  retransmit_ratio < 0.5%
}

apply bbr {
  to       slow
  in       fra2
  set      congestion_control bbr
}
"""
FLAPPING = """
test "a flapping one stays out" {
  given    192.0.2.0/24 in fra2 membership "10..."
  expect   slow excludes 192.0.2.0/24 because flap_rate
}
"""
STEADY = """
test "a steady one comes in" {
  given    192.0.2.0/24 in fra2 membership "1..."
  expect   slow includes 192.0.2.0/24
}
"""
WRONG = """
test "wrong" {
  given    192.0.2.0/24 in fra2 membership "10..."
  expect   slow excludes 192.0.2.0/24 because flap_rate
  expect   slow excludes 192.0.2.0/24 because windows
  expect   slow includes 192.0.2.0/24
}
"""
RECORDED = """
test "recorded" {
  given    telemetry "telemetry/fra2.pb"
  expect   slow includes 198.18.64.0/24 in fra2
  expect   slow excludes 198.18.79.0/24 in fra2 because min_rtt
  expect   slow excludes 198.18.75.0/24 in fra2 because retransmit_ratio
  expect   slow excludes 198.18.86.0/24 in fra2 because flap_rate
}
"""


def run(directory, policy, *options):
    """(exit code, standard output, standard error) of `tidegate test` on a policy's text."""
    (directory / "p.tide").write_text(policy)
    with chdir(directory):
        done = CliRunner().invoke(main, ["test", "p.tide", *map(str, options)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """An inventory, and two simulated hours of each POP."""
    directory = tmp_path_factory.mktemp("tested") / "house"
    shutil.copytree(ROOT / "inventory", directory / "inventory", ignore=shutil.ignore_patterns("group_vars"))
    with chdir(directory):
        arguments = ["simulate", "--inventory", "inventory", "--hours", "2", "--out", "telemetry"]
        assert CliRunner().invoke(main, arguments).exit_code == 0
    return directory


def test_a_test_that_fails_is_shown_before_a_rule_that_contradicts_another(house):
    again = "\napply again {\n  to   slow\n  in   fra2\n  set  congestion_control bbr\n}\n"
    code, out, _ = run(house, POLICY + again + WRONG)
    assert code == 1
    assert "FAIL  wrong" in out
    code, _, err = run(house, POLICY + again + STEADY)
    assert code == 1
    assert "error[C125]: `again` can never apply" in err


def test_what_passes_is_said_in_a_line_each(house):
    code, out, err = run(house, POLICY + FLAPPING + STEADY)
    assert (code, err) == (0, "")
    assert out == (
        "p.tide\n"
        "  ok    a flapping one stays out  (line 23)\n"
        "  ok    a steady one comes in  (line 28)\n"
        "2 tests: 2 passed\n"
    )


def test_a_file_that_can_not_be_read_keeps_no_other_from_being_tested(house):
    code, out, err = run(house, POLICY + STEADY, "missing.tide")
    assert (code, out.splitlines()[-1]) == (2, "1 test: 1 passed")
    assert err == "error: can not read missing.tide: no such file or directory\n"
    code, out, _ = run(house, POLICY + WRONG, "missing.tide")
    assert (code, out.splitlines()[-1]) == (1, "1 test: 1 failed")
    code, out, _ = run(house, POLICY + STEADY, "--limits", "missing.yaml", "missing.tide")
    assert (code, out) == (2, "")


def test_what_fails_shows_what_was_found(house):
    code, out, _ = run(house, POLICY + STEADY + WRONG)
    assert code == 1
    assert out == (
        "p.tide\n"
        "  ok    a steady one comes in  (line 23)\n"
        "  FAIL  wrong  (line 28)\n"
        "          line 31: expect slow excludes 192.0.2.0/24 because windows\n"
        "            slow excludes 192.0.2.0/24 in fra2 because of duty_cycle and flap_rate, not because of windows\n"
        "            membership 101010101010\n"
        "            pass  rank bottom 20% of pop                 member in 6 windows  (line 8)\n"
        "            pass  require windows >= 10                  12 observed  (line 11)\n"
        "            FAIL  require duty_cycle >= 60% leave < 40%  50.0% (6 of 12 windows)  (line 9)\n"
        "            FAIL  require flap_rate <= 10%               100.0% (11 changes in 11 pairs)  (line 10)\n"
        "          line 32: expect slow includes 192.0.2.0/24\n"
        "            slow excludes 192.0.2.0/24 in fra2 because of duty_cycle and flap_rate\n"
        "            membership 101010101010\n"
        "            pass  rank bottom 20% of pop                 member in 6 windows  (line 8)\n"
        "            pass  require windows >= 10                  12 observed  (line 11)\n"
        "            FAIL  require duty_cycle >= 60% leave < 40%  50.0% (6 of 12 windows)  (line 9)\n"
        "            FAIL  require flap_rate <= 10%               100.0% (11 changes in 11 pairs)  (line 10)\n"
        "2 tests: 1 passed, 1 failed\n"
    )


def test_recorded_telemetry_is_judged_as_selection_would(house):
    """Each reason by itself: what the simulator made those prefixes for."""
    code, out, err = run(house, POLICY + RECORDED, "--json")
    assert (code, err) == (0, "")
    (test,) = json.loads(out)["files"][0]["tests"]
    assert test["result"] == "ok"
    assert [each["reasons"] for each in test["expectations"]] == [
        [],
        ["min_rtt"],
        ["retransmit_ratio"],
        ["flap_rate"],
    ]
    assert {len(each["membership"]) for each in test["expectations"]} == {12}


def test_until_takes_the_rest_away(house):
    """Half an hour is six windows: too few. The other test on the same recording sees all of it."""
    early = RECORDED.replace('fra2.pb"', 'fra2.pb" until 2026-11-20T00:30Z').replace('"recorded"', '"early"')
    code, out, _ = run(house, POLICY + RECORDED + early, "--json")
    assert code == 1
    recorded, early = json.loads(out)["files"][0]["tests"]
    assert recorded["result"] == "ok"
    assert early["expectations"][0]["reasons"] == ["windows", "duty_cycle"]
    assert early["expectations"][0]["membership"] == "......" + "111111"


def test_two_recordings_do_not_mix(house):
    """The second one holds no sample of the first one's POP."""
    other = RECORDED.replace("fra2.pb", "ams1.pb").replace('"recorded"', '"other"')
    found = json.loads(run(house, POLICY + RECORDED + other, "--json")[1])["files"][0]["tests"]
    assert [test["result"] for test in found] == ["ok", "failed"]
    assert {each["membership"] for each in found[1]["expectations"]} == {"." * 12}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("telemetry/none.pb", "No such file"),
        ("p.tide", "not a row"),
        ("empty.pb", "no samples"),
        ('telemetry/fra2.pb" until 2026-11-19', "no samples in it before 2026-11-19T00:00Z"),
        ("telemetry", "not a regular file"),
    ],
)
def test_a_recording_that_can_not_be_used_is_named_with_its_test(house, path, words):
    (house / "empty.pb").write_bytes(b"")
    text = RECORDED.replace('telemetry/fra2.pb"', path if '"' in path else f'{path}"')
    code, out, _ = run(house, POLICY + STEADY + text)
    assert code == 2
    assert "p.tide:28: " in out
    assert words in out
    assert "ok    a steady one" in out


def test_errors_of_a_policy_come_first(house):
    code, out, err = run(house, POLICY.replace("60%", "60") + STEADY)
    assert (code, out) == (1, "")
    assert "error[T101]" in err
    assert "its tests were not run" in err


def test_no_tests_is_a_note_unless_they_are_required(house):
    assert run(house, POLICY) == (0, "", "note: there is no test\n")
    assert run(house, POLICY, "--require-tests")[0] == 1
    assert run(house, POLICY + STEADY, "--filter", "steady")[0] == 0
    code, _, err = run(house, POLICY + STEADY, "--filter", "nothing", "--require-tests")
    assert (code, err) == (1, "note: there is no test whose name contains `nothing`\n")


def test_filter_keeps_the_others_from_failing(house):
    assert run(house, POLICY + STEADY + WRONG, "--filter", "wrong")[0] == 1
    code, out, _ = run(house, POLICY + STEADY + WRONG, "--filter", "steady")
    assert (code, out.splitlines()[-1]) == (0, "1 test: 1 passed")


def test_a_directory_stands_for_every_policy_below_it(house):
    (house / "below").mkdir()
    for name in ("b", "a"):
        text = POLICY.replace('"inventory"', '"../inventory"')
        (house / f"below/{name}.tide").write_text(text + STEADY)
    with chdir(house):
        done = CliRunner().invoke(main, ["test", "below"])
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("below")] == [
        "below/a.tide",
        "below/b.tide",
    ]


STAYS = """
test "a selected one goes" {
  given    192.0.2.0/24 in fra2 membership "0000000001.." selected
  expect   slow excludes 192.0.2.0/24 because duty_cycle
}
"""


def coverage(house, *tests):
    found = json.loads(run(house, POLICY + "".join(tests), "--coverage", "--json")[1])["coverage"]
    (select,) = found["selects"]
    covered = {each["clause"] for each in select["clauses"] if each["tests"]}
    assert found["covered"] == len(covered)
    assert found["clauses"] == len(select["clauses"])
    return covered


def test_coverage_counts_what_tests_decide_on(house):
    windows = {
        "from traffic client where bytes_acked >= 100 KB and not app_limited",
        "rank bottom 20% of pop",
    }
    windows |= {"require samples >= 20 per window"}
    excludes = {"exclude min_rtt < 10 ms", "exclude retransmit_ratio < 0.5%"}
    assert coverage(house) == set()
    assert coverage(house, STEADY) == {"slow includes a prefix"}
    assert coverage(house, FLAPPING) == {"require flap_rate <= 10%"}
    assert coverage(house, STAYS) == {"duty_cycle leave < 40%"}
    assert coverage(house, WRONG) == set()
    assert coverage(house, RECORDED) == windows | excludes | {
        "slow includes a prefix",
        "require flap_rate <= 10%",
    }


def test_coverage_is_a_table_and_can_be_asked_for(house):
    code, out, err = run(house, POLICY + STEADY + FLAPPING, "--coverage", "--min-coverage", "50")
    assert code == 1
    assert "  require flap_rate <= 10%                                             line 10    1 test\n" in out
    assert (
        "  require windows >= 10                                                line 11    no test\n" in out
    )
    assert out.endswith("coverage: 20.0% (2 of 10 clauses)\n")
    assert err == "coverage is below 50%: 20.0% (2 of 10 clauses)\n"
    assert run(house, POLICY + STEADY + FLAPPING, "--min-coverage", "20")[0] == 0


def test_junit_has_each_test_with_what_was_found(house):
    strange = STEADY.replace("a steady one", "<&\x01 ☃ one")
    missing = RECORDED.replace("fra2.pb", "none.pb")
    code, _, _ = run(house, POLICY + strange + WRONG + missing, "--junit", "report.xml")
    assert code == 1
    (suite,) = ElementTree.parse(house / "report.xml").getroot()  # noqa: S314 - we wrote it
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    passed, failed, unreadable = suite
    assert (passed.get("name"), list(passed)) == ("<&\N{REPLACEMENT CHARACTER} ☃ one comes in", [])
    assert failed.get("line") == "28"
    assert failed[0].tag == "failure"
    assert "FAIL  require duty_cycle" in failed[0].text
    assert unreadable[0].tag == "error"


def test_without_the_store_the_other_tests_are_reported(house):
    (house / "p.tide").write_text(POLICY + STEADY + RECORDED)
    program = "import sys; sys.modules['chdb'] = None; from tidegate.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "test", "p.tide"],
        cwd=house, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "ok    a steady one comes in" in done.stdout
    assert "SKIP  recorded  (line 28)" in done.stdout
    assert "pip install 'tidegate[embedded]'" in done.stdout


CLAUSE = Clause(1, "clause")
bounds = st.none() | st.builds(
    Bound, st.sampled_from([0, 1, 250_000, 500_000, 1_000_000]), st.just(CLAUSE), st.none() | st.just(400_000)
)


@given(
    membership=st.text("10.", min_size=8, max_size=8),
    windows=st.none() | st.builds(Bound, st.integers(1, 8), st.just(CLAUSE), st.none() | st.just(1)),
    duty_cycle=bounds,
    flap_rate=bounds,
    selected=st.booleans(),
)
def test_clauses_are_judged_as_selection_judges_them(membership, windows, duty_cycle, flap_rate, selected):
    select = Select(
        "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), 8, 1, Rank("bottom", 200_000, None, CLAUSE),
        duty_cycle, flap_rate, windows, None, (), 0, None,
    )  # fmt: skip
    reasons = missed(select, membership, selected=selected)
    assert misses(select, membership, None, selected=selected) == list(reasons)
    failed = {each.reason for each in judged(select, membership, None, selected=selected) if not each.passed}
    assert bool(failed) == bool(reasons)
    assert failed - {"rank"} <= set(reasons)
