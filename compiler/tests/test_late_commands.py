"""A POP dies, comes back late, and its windows are reopened: the commands as docs/late-data.md says."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tidegate.cli import main
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 11, 20, 5, tzinfo=UTC)
SLOW, FAST = "198.18.1.0/24", "198.18.2.0/24"
COLUMNS = [
    "observed_at", "pop", "host", "traffic_class", "remote_address", "remote_prefix_length", "delivery_rate"
]  # fmt: skip
POLICY = """edition 2026.1
inventory "inventory"

select slow {
  measure  delivery_rate by prefix /24 /56
  from     traffic client
  over     30m step 5m
  rank     bottom 50% of pop
  require  duty_cycle >= 60%
}

apply bbr_for_slow {
  to       slow
  in       all
  set      congestion_control bbr
}
"""


def sampled(client, pop, first, until, *, swapped=False, times=1):
    """Samples of both prefixes every minute, from minute to minute after the start."""
    rates = {SLOW: 1000, FAST: 9000}
    rows = [
        [START + timedelta(minutes=at), pop, f"{pop}-edge1", "client", f"::ffff:{prefix.split('/')[0]}", 128,
         rates[FAST if (prefix == SLOW) == swapped else SLOW]]
        for at in range(first, until)
        for prefix in rates
    ]  # fmt: skip
    client.insert("socket_samples", rows * times, column_names=COLUMNS)


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Two POPs with half an hour of telemetry."""
    groups = "".join(
        f"    pop_{pop}:\n      hosts:\n        {pop}-edge1:\n      vars:\n        tidegate_pop: {pop}\n"
        f"        tidegate_own_prefixes: [{own}]\n"
        for pop, own in (("ams1", "192.0.2.0/25"), ("fra2", "192.0.2.128/25"))
    )
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/hosts.yml").write_text(f"pops:\n  children:\n{groups}", encoding="utf-8")
    (tmp_path / "edge.tide").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_LIMITS", str(ROOT / "policies/limits.yaml"))
    with store(tmp_path) as client:
        migrate(client)
        for pop in ("ams1", "fra2"):
            sampled(client, pop, 0, 30)
    return tmp_path


def store(house):
    return open_store(f"chdb://{house / '.tidegate/telemetry'}")


def tidegate(*arguments):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def planned(minutes, *options):
    """(the plan, standard error) of a plan that many minutes after the start, saved as plan.json."""
    as_of = f"{START + timedelta(minutes=minutes, seconds=31):%Y-%m-%dT%H:%M:%SZ}"
    done = tidegate("plan", "edge.tide", "--as-of", as_of, "--out", "plan.json", "--json", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["plan"], done.stderr


def selected(plan, pop):
    return [(d["prefix"], d["action"]) for d in plan["pops"][pop]["decisions"]]


def test_a_pop_that_lags_keeps_what_it_has_and_is_named_with_its_lag(house):
    first, said = planned(30)
    assert said == ""
    assert selected(first, "fra2") == [(SLOW, "added")]
    assert tidegate("apply", "plan.json").exit_code == 0
    with store(house) as client:
        sampled(client, "ams1", 30, 60, swapped=True)
    lagging, said = planned(60)
    assert "fra2 keeps what it has: the telemetry of fra2 ends at 2026-11-20T05:30:00Z, 30m behind" in said
    assert "ams1" not in said
    assert selected(lagging, "ams1") == [(FAST, "added")]
    assert selected(lagging, "fra2") == [(SLOW, "held")]
    assert lagging["pops"]["fra2"]["claims"] == first["pops"]["fra2"]["claims"]
    assert lagging["pops"]["fra2"]["telemetry"]["lag_s"] == 1800
    assert tidegate("apply", "plan.json").exit_code == 0
    assert "held, treated" in tidegate("explain", SLOW, "--at", "fra2", "--short").output
    assert "stays until" not in tidegate("explain", SLOW, "--at", "fra2", "--short").output
    with store(house) as client:  # its topic is read again: nothing of it is too late
        sampled(client, "fra2", 30, 60, swapped=True)
    back, said = planned(60)
    assert said == ""
    assert selected(back, "fra2") == [(FAST, "added")]
    assert back["pops"]["fra2"]["telemetry"]["late"] == []


def test_a_pop_that_comes_back_lags_until_it_has_reached_the_applied_plan(house):
    with store(house) as client:
        sampled(client, "ams1", 30, 60)
    first, _ = planned(60)
    assert tidegate("apply", "plan.json").exit_code == 0
    with store(house) as client:
        sampled(client, "fra2", 30, 55)  # five minutes behind, which is no lag by itself
    behind, said = planned(60)
    assert behind["watermark"] == first["watermark"] == "2026-11-20T06:00:00Z"
    assert "fra2 keeps what it has: the telemetry of fra2 ends at 2026-11-20T05:55:00Z, 5m behind" in said
    with store(house) as client:
        sampled(client, "fra2", 55, 60)
    back, said = planned(60)
    assert (back["watermark"], said) == (first["watermark"], "")


def test_a_wider_bound_waits_for_the_pop_instead(house):
    with store(house) as client:
        sampled(client, "ams1", 30, 60)
    plan, said = planned(60, "--max-lag", "1800")
    assert (said, plan["watermark"]) == ("", "2026-11-20T05:30:00Z")


def test_late_samples_are_counted_and_used_once_the_windows_are_reopened(house):
    span = ("--pop", "fra2", "--from", "2026-11-20T05:00:00Z", "--until", "2026-11-20T05:30:00Z")
    planned(30)
    with store(house) as client:
        sampled(client, "fra2", 5, 30, swapped=True, times=3)
    plan, said = planned(30)
    assert "fra2: 150 samples came after their windows were closed and are not used" in said
    assert selected(plan, "fra2") == [(SLOW, "added")]
    assert [entry["samples"] for entry in plan["pops"]["fra2"]["telemetry"]["late"]] == [30] * 5

    shown = json.loads(tidegate("windows", "show", *span, "--late", "--json").stdout)
    assert [(window["samples"], window["late"]) for window in shown] == [(10, 30)] * 5
    assert tidegate("windows", "show", *span[2:]).stdout.count("\n") == 12
    done = tidegate("windows", "reopen", *span)
    assert (done.exit_code, done.stdout.count("30 late")) == (0, 5), done.output
    plan, said = planned(30)
    assert (said, selected(plan, "fra2")) == ("", [(FAST, "added")])
    assert selected(plan, "ams1") == [(SLOW, "added")]


def test_a_window_is_not_reopened_where_it_would_lose_samples(house):
    planned(30)
    with store(house) as client:
        client.command("DELETE FROM socket_samples WHERE observed_at < '2026-11-20 05:05:00'")
    until = ("--until", "2026-11-20T05:30:00Z")
    done = tidegate("windows", "reopen", "--pop", "fra2", "--from", "2026-11-20T05:00:00Z", *until)
    assert done.exit_code == 2
    assert "1 of 6 windows of fra2" in done.stderr
    assert "was made of 10, and 0 are in the store" in done.stderr
    done = tidegate("windows", "reopen", "--pop", "fra2", "--from", "2026-11-20T05:05:00Z", *until)
    assert done.exit_code == 0, done.output


def test_windows_that_were_closed_for_all_pops_stay_closed(house):
    """As a store of the migrations before the tenth has them."""
    before, _ = planned(30)
    with store(house) as client:
        client.command("CREATE TABLE was AS closed_windows ENGINE = Memory")
        client.command("INSERT INTO was SELECT * FROM closed_windows")
        client.command("TRUNCATE TABLE closed_windows")
        client.command(
            "INSERT INTO closed_windows (view, window_start) SELECT DISTINCT view, window_start FROM was"
        )
        sampled(client, "fra2", 0, 30, swapped=True)
        rows = client.query("SELECT * FROM prefix_windows ORDER BY ALL").result_rows
    after, said = planned(30)
    assert (said, after["pops"]["fra2"]["decisions"]) == ("", before["pops"]["fra2"]["decisions"])
    with store(house) as client:
        assert client.query("SELECT * FROM prefix_windows ORDER BY ALL").result_rows == rows
    until = ("--until", "2026-11-20T05:30:00Z")
    done = tidegate("windows", "reopen", "--pop", "fra2", "--from", "2026-11-20T05:00:00Z", *until)
    assert (done.exit_code, "no window of fra2" in done.stderr) == (2, True)


@pytest.mark.usefixtures("house")
def test_the_page_says_what_the_commands_take():
    page = (ROOT / "docs/late-data.md").read_text(encoding="utf-8")
    planned(30)
    said = [line.split() for line in page.splitlines() if line.startswith("tidegate windows")]
    assert [command[2] for command in said] == ["show", "reopen"]
    for command in said:
        assert tidegate(*command[1:]).exit_code == 0
