"""What is said of a rule that its guard or the end of its schedule stopped, and of a state that can not be read."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner
from tidegate.cli import main

ROOT = Path(__file__).resolve().parents[2]
POPS = ("ams1", "fra2", "iad1", "sin1")
RULES = """edition 2026.1
inventory "inventory"

select slow_clients {
  measure  delivery_rate by prefix /24 /56
  from     traffic client where bytes_acked >= 100 KB and not app_limited
  over     1h step 5m
  rank     bottom 20% of pop
  require  duty_cycle >= 60%
  exclude  min_rtt < 10 ms
}

apply tuned {
  to       slow_clients
  in       all
  set      congestion_control bbr
  limit    150 new prefixes per run
  hold_out 40% of prefixes
  active   2026-11-20T01:00Z until 2026-11-20T03:30Z
}
"""
TRIAL = """
guard brake {
  watch tuned
  abort when delivery_rate p50 > 1% of hold_out
  on_failure release for 1h
}

experiment trial {
  on       tuned
  hold_out 25% of hosts
}
"""
SCHEDULE = "active 2026-11-20T01:00Z until 2026-11-20T03:30Z"


def tidegate(*arguments):
    """(exit code, output) of a command."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def succeeds(*arguments):
    code, out = tidegate(*arguments)
    assert code == 0, out
    return out


def applied(clock, name):
    """Plan for a time of day and apply; the plan."""
    succeeds("plan", "edge.tide", "--as-of", f"2026-11-20T{clock}:00Z", "--out", name)
    succeeds("apply", name)
    return json.loads(Path(name).read_text())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """An inventory, and four hours of its telemetry in a store."""
    directory = tmp_path_factory.mktemp("stops") / "fleet"
    shutil.copytree(ROOT / "inventory", directory / "inventory", ignore=shutil.ignore_patterns("group_vars"))
    with chdir(directory):
        succeeds("simulate", "--inventory", "inventory", "--out", "telemetry", "--hours", 4)
        succeeds("ingest", *(f"telemetry/{pop}.pb" for pop in POPS))
    return directory


@pytest.fixture
def house(fleet, tmp_path, monkeypatch):
    """A directory of its own; the store is that of the fleet."""
    shutil.copytree(fleet / "inventory", tmp_path / "inventory")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TIDEGATE_DSN", f"chdb://{fleet}/.tidegate/telemetry")
    return tmp_path


def explained(prefix, pop, *options):
    return succeeds("explain", prefix, "--at", pop, *options)


def test_an_abort_is_explained_until_its_time_is_over(house):
    (house / "edge.tide").write_text(RULES + TRIAL)
    first = applied("01:31", "first.json")
    assert first["pops"]["fra2"]["control_hosts"]
    aborted = applied("02:41", "aborted.json")
    (guard,) = aborted["pops"]["fra2"]["guards"]
    prefix = aborted["pops"]["fra2"]["released"][0]["prefix"]
    out = explained(prefix, "fra2")
    assert out.startswith(f"{prefix} at fra2, by slow_clients: released by tuned\n")
    assert f"why        {guard['because']}\n" in out
    until = "brake: released since 2026-11-20T02:40Z, admits none until 2026-11-20T03:40Z"
    assert f"guard      {until}; {guard['because']}\n" in out
    assert "told       nothing: the kernel's own settings\n" in out
    assert "Mbps of" in guard["because"]

    applied("02:51", "waiting.json")
    heading, why = explained(prefix, "fra2", "--short").splitlines()
    assert heading.endswith(": deferred by tuned")
    assert why.startswith(f"  it qualifies and waits: {guard['because']}; draws ")
    (document,) = json.loads(explained(prefix, "fra2", "--json"))
    assert document["fate"]["guards"] == [guard | {"until": "2026-11-20T03:40:00Z"}]


def test_the_end_of_a_schedule_is_explained(house):
    (house / "edge.tide").write_text(RULES)
    applied("03:21", "first.json")
    ended = applied("03:31", "ended.json")
    released = ended["pops"]["fra2"]["released"]
    assert {entry["because"] for entry in released} == {f"{SCHEDULE} (line 19)"}
    prefix = released[0]["prefix"]
    heading, why = explained(prefix, "fra2", "--short").splitlines()
    assert heading.endswith(": released by tuned")
    assert why == f"  {SCHEDULE} (line 19)"
    assert "schedule   tuned does not apply at the plan's time; active 2026-11-20T01:00Z until" in explained(
        prefix, "fra2"
    )
    applied("03:41", "after.json")
    heading, why = explained(prefix, "fra2", "--short").splitlines()
    assert heading.endswith(": qualifies, and is not selected")
    assert why == f"  no rule that asks for it applies at this time: {SCHEDULE} (line 19)"


def test_an_applied_plan_of_another_release_is_refused_with_a_way_out(house):
    """docs/upgrade.md, section `Begin anew`, step by step."""
    (house / "edge.tide").write_text(RULES)
    first = applied("03:01", "first.json")
    path = house / ".tidegate/applied.json"
    for body in first["pops"].values():
        del body["guards"], body["control_claims"]
    path.write_text(json.dumps(first))
    again = ("plan", "edge.tide", "--as-of", "2026-11-20T03:11:00Z", "--out", "again.json")
    for command in (again, ("apply", "first.json"), ("explain", "198.18.7.0/24", "--at", "fra2")):
        code, out = tidegate(*command)
        assert code == 2
        for pop in POPS:
            assert f"$.pops.{pop}: " in out
        assert "lacks the key `control_claims`, `guards`" in out
        assert "docs/upgrade.md" in out
    path.rename(house / "moved.json")
    assert tidegate(*again)[0] == 1
    for variables in house.glob("inventory/group_vars/pop_*/tidegate.yml"):
        variables.unlink()
    succeeds(*again)
    succeeds("apply", "again.json")
    assert len(list(house.glob("inventory/group_vars/pop_*/tidegate.yml"))) == len(POPS)
