"""`tidegate explain` and `tidegate plan --diff` on the simulated fleet: every answer agrees with the plan."""

import ipaddress
import json
import shutil
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tidegate.characters import characters
from tidegate.cli import main
from tidegate.explain import explain, measured_prefix
from tidegate.fate import fate_of, was_selected
from tidegate.plan import load
from tidegate.telemetry.store import open_store
from tidegate.timeline import sparkline, with_hours
from tidegate_dsl import check_file, read_fleet

ROOT = Path(__file__).resolve().parents[2]
LIMITS = ROOT / "policies/limits.yaml"
EARLIER, LATER = "2026-11-20T05:31:00Z", "2026-11-20T06:01:00Z"
POLICY = """edition 2026.1
inventory "inventory"

select slow_clients {
  measure  delivery_rate by prefix /24 /56
  from     traffic client where bytes_acked >= 100 KB and not app_limited
  over     6h step 5m
  rank     bottom 20% of pop
  require  duty_cycle >= 60%
  require  flap_rate <= 10%
  require  windows >= 54
  require  samples >= 20 per window
  exclude  min_rtt < 10 ms
  exclude  retransmit_ratio < 0.5%
  hold     2h
}

apply bbr_for_slow_clients {
  to       slow_clients
  in       all except iad1
  set      congestion_control bbr
  when     transfer_size >= 100 KB
  limit    500 prefixes per pop
  limit    12 new prefixes per run
  hold_out 10% of prefixes
}

learn between_pops {
  observe  cwnd by destination
  toward   peer_pops
  in       all
  smooth   0.5 every 1s
  set      initcwnd between 10 and 100 segments
  expire   10m
}
"""
CHANGES = {
    "< 0.5%": "< 1.8% leave < 1.5%",
    ">= 100 KB\n  limit    500": ">= 300 KB\n  limit    4",
    "12 new": "3 new",
    "100 segments": "80 segments",
}
MORE = """
select anything {
  measure  delivery_rate by prefix /24 /56
  from     traffic client
  over     1h step 5m
  rank     delivery_rate < 1 Gbps
}

apply cubic_later {
  to       anything
  in       fra2
  set      congestion_control cubic
  active   2027-01-01 until 2027-02-01
}

initcwnd many {
  for      198.18.0.0/15
  in       fra2
  set      initcwnd 20 segments
}
"""


def tidegate(directory, *arguments):
    """(exit code, output) of a command, run in `directory`."""
    with chdir(directory):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A plan that was applied, and one of a stricter policy half an hour later, with decisions of every kind."""
    directory = tmp_path_factory.mktemp("explained") / "house"
    shutil.copytree(ROOT / "inventory", directory / "inventory", ignore=shutil.ignore_patterns("group_vars"))
    policy = directory / "edge.tide"
    policy.write_text(POLICY)
    for arguments in (
        ("simulate", "--inventory", "inventory", "--out", "telemetry"),
        ("ingest", *(f"telemetry/{pop}.pb" for pop in ("ams1", "fra2", "iad1", "sin1"))),
        ("plan", "edge.tide", "--as-of", EARLIER, "--out", "earlier.json"),
        ("apply", "earlier.json"),
    ):
        code, out = tidegate(directory, *arguments)
        assert code == 0, out
    changed = POLICY
    for old, new in CHANGES.items():
        assert changed.count(old) == 1
        changed = changed.replace(old, new)
    policy.write_text(changed + MORE)
    code, out = tidegate(directory, "plan", "edge.tide", "--as-of", LATER, "--out", "later.json")
    assert code == 0, out
    return directory


@pytest.fixture(scope="module")
def made(house):
    return load(house / "later.json")


def of_kind(made, pop, kind):
    body = made.pops[pop]
    if kind in ("deferred", "released"):
        return [entry["prefix"] for entry in body[kind]]
    return [d["prefix"] for d in body["decisions"] if d["action"] == kind]


def ask(house, prefix, pop, *options):
    code, out = tidegate(house, "explain", prefix, "--at", pop, "--plan", "later.json", *options)
    assert code == 0, out
    return out


def test_the_plan_has_every_kind_of_decision(made):
    """What the tests below look at is there."""
    for kind in ("added", "kept", "held", "released", "deferred"):
        assert any(of_kind(made, pop, kind) for pop in made.pops), kind


def test_explain_says_of_every_prefix_what_the_plan_decided(house, made):
    with chdir(house):
        policy = check_file(Path("edge.tide"), limits=LIMITS).policy
        clients = characters(read_fleet(Path("inventory")), seed=1)
    select = policy.selects[0]
    rule = policy.applies[0]
    with open_store(f"chdb://{house / '.tidegate/telemetry'}") as client:
        for pop in rule.pops:
            named = {p: kind for kind in ("added", "kept", "held", "released", "deferred")
                     for p in of_kind(made, pop, kind)}  # fmt: skip
            others = [prefix for prefix in clients[pop] if prefix not in named][:12]
            for prefix in (*named, *others):
                selected = was_selected(made, policy, select, pop, prefix)
                found = explain(client, policy, select, made.watermark, pop, prefix, selected=selected)
                fate = fate_of(made, policy, select, pop, prefix)
                kind = named.get(prefix, "absent")
                assert fate.kind == kind
                assert selected == (kind in ("kept", "held", "released"))
                if kind == "released" and fate.because.startswith("limit"):
                    continue  # that one had to make room, whether it qualifies or not
                assert found.qualifies == (kind in ("added", "kept", "deferred")), (pop, prefix, kind)
                assert found.qualifies == all(clause.passed for clause in found.clauses)


def test_the_answer_to_each_why(house, made):
    """Kept, held, waiting, released, held out, not selected: each in two lines."""

    def first(kind):
        return next((pop, of_kind(made, pop, kind)[0]) for pop in made.pops if of_kind(made, pop, kind))

    def short(kind):
        pop, prefix = first(kind)
        return ask(house, prefix, pop, "--short").splitlines()

    assert "by slow_clients: kept, " in short("kept")[0]
    assert "stays until 2026-11-20T08:00Z if it stops qualifying" in short("kept")[1]
    assert short("held")[1].startswith(
        "  hold 2h (line 15); exclude retransmit_ratio < 1.8% leave < 1.5% (line 14): 1."
    )
    assert "stays until 2026-11-20T07:30Z" in short("held")[1]
    assert "it qualifies and waits: limit " in short("deferred")[1]
    assert "limit 4 prefixes per pop (line 23)" in short("released")[1]
    control = next(
        (pop, d["prefix"])
        for pop, body in made.pops.items()
        for d in body["decisions"]
        if d["arm"] == "held_out"
    )
    assert "held out by bbr_for_slow_clients" in ask(house, control[1], control[0], "--short")
    assert "% < 10% held out" in ask(house, control[1], control[0], "--short")
    assert "told       nothing" in ask(house, control[1], control[0])


def test_short_form_of_one_that_is_not_selected(house):
    assert ask(house, "198.18.86.0/24", "fra2", "--short").splitlines()[:2] == [
        "198.18.86.0/24 at fra2, by slow_clients: not selected",
        (
            "  require flap_rate <= 10% (line 10): 49.3% (35 changes in 71 pairs);"
            " exclude retransmit_ratio < 1.8% leave < 1.5% (line 14): 1.25%"
        ),
    ]


def test_usual_form_of_one_that_is_not_selected(house):
    out = ask(house, "198.18.79.200", "fra2")
    assert out.split("198.18.79.0/24 at fra2, by anything")[0] == (
        "198.18.79.0/24 at fra2, by slow_clients: not selected\n"
        "  why        exclude min_rtt < 10 ms (line 13): 4.9 ms\n"
        "  initcwnd   20 segments for 198.18.0.0/15 by many (line 51)\n"
        "  told       initcwnd 20\n"
        "  last       2026-11-20T05:55Z: delivery_rate 1.38 Mbps, threshold 17.95 Mbps, 20 samples\n"
        "  timeline   11111111111111111111111111.111111111111111111111111111111111\n"
        "             11-20       01:00       02:00       03:00       04:00\n"
        "             111111111111\n"
        "             05:00\n"
        "             1 member, 0 not, . not observed; UTC\n"
        "  pass       rank bottom 20% of pop                        member in 71 windows  (line 8)\n"
        "  pass       require windows >= 54                         71 observed  (line 11)\n"
        "  pass       require duty_cycle >= 60%                     98.6% (71 of 72 windows)  (line 9)\n"
        "  pass       require flap_rate <= 10%                      0.0% (0 changes in 69 pairs)  (line 10)\n"
        "  FAIL       exclude min_rtt < 10 ms                       4.9 ms  (line 13)\n"
        "  pass       exclude retransmit_ratio < 1.8% leave < 1.5%  1.97%  (line 14)\n"
    )


def test_long_form_shows_every_window(house):
    out = ask(house, "198.18.86.0/24", "fra2", "--long")
    assert "  values     ▁▁▁█▁▁▁█" in out
    rows = [
        line
        for line in out.splitlines()
        if line.endswith(("  member", " Mbps")) and line.startswith("  2026")
    ]
    assert len(rows) == 72 + 12
    assert sum(row.endswith("member") for row in rows[:72]) == 54


def test_a_select_whose_rule_rests_says_so(house):
    out = ask(house, "198.18.65.0/24", "fra2", "--short").splitlines()
    assert out[2:] == [
        "198.18.65.0/24 at fra2, by anything: qualifies, and is not selected",
        "  no rule that asks for it applies at this time: active 2027-01-01 until 2027-02-01 (line 48)",
    ]
    out = ask(house, "198.18.65.0/24", "ams1", "--short").splitlines()
    assert out == [
        "198.18.65.0/24 at ams1, by slow_clients: not selected",
        "  not observed in the lookback, which takes 20 samples passing `from` in a window",
        "198.18.65.0/24 at ams1, by anything: not selected",
        "  not observed in the lookback, which takes 1 sample passing `from` in a window",
    ]


def test_json_has_the_fate_beside_the_clauses(house, made):
    pop, prefix = next(
        (pop, of_kind(made, pop, "kept")[0]) for pop in made.pops if of_kind(made, pop, "kept")
    )
    found, other = json.loads(ask(house, prefix, pop, "--json"))
    assert found["qualifies"]
    assert found["selected_before"]
    assert found["decision"]["action"] == found["fate"]["kind"] == "kept"
    assert found["fate"]["held_until"] == "2026-11-20T08:00:00Z"
    assert found["clauses"][-1]["bound"] == "leave < 1.5%"
    assert other["fate"]["kind"] == "elsewhere"


def test_a_policy_without_a_select_still_says_what_hosts_are_told(tmp_path):
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory", ignore=shutil.ignore_patterns("group_vars"))
    head, window = POLICY.partition("\nselect")[0], MORE[MORE.index("initcwnd many") :]
    (tmp_path / "windows.tide").write_text(f"{head}\n{window}")
    code, out = tidegate(tmp_path, "plan", "windows.tide", "--out", "plan.json")
    assert code == 0, out

    def ask(pop):
        return tidegate(tmp_path, "explain", "198.18.64.9", "--at", pop, "--plan", "plan.json")

    assert ask("fra2")[1].splitlines() == [
        "198.18.64.9/32 at fra2: the policy has no select",
        "  initcwnd   20 segments for 198.18.0.0/15 by many (line 4)",
        "  told       initcwnd 20",
    ]
    assert ask("ams1")[1].endswith("  told       nothing: the kernel's own settings\n")


def test_diff_counts_first_then_who_then_settings(house):
    code, out = tidegate(house, "plan", "edge.tide", "--as-of", LATER, "--out", "again.json", "--diff")
    assert code == 0, out
    lines = out.splitlines()
    assert lines[0].split() == [
        "POP",
        "observed",
        "new",
        "kept",
        "held",
        "released",
        "deferred",
        "held",
        "out",
        "claims",
    ]
    marks = [line.split()[0] for line in lines if line.startswith(("  + ", "  - ", "  ~ "))]
    assert set(marks) == {"+", "-", "~"}
    assert any(
        line.endswith("limit 4 prefixes per pop (line 23)") for line in lines if line.startswith("  - ")
    )
    assert "  ~ fra2 learned initcwnd at most 100 segments → 80 segments  (learn)" in lines
    assert any(line.startswith("  ~ fra2 transfer_size >= 100 KB → 300 KB  (") for line in lines)


def test_diff_of_what_changes_nothing_is_one_line(house):
    """The same telemetry and policy as applied: no POP is shown."""
    edge = house / "edge.tide"
    changed = edge.read_text()
    edge.write_text(POLICY)
    try:
        code, out = tidegate(house, "plan", "edge.tide", "--as-of", EARLIER, "--out", "same.json", "--diff")
    finally:
        edge.write_text(changed)
    assert code == 0
    assert out.startswith("Nothing changes against generation ")
    assert "+" not in out


def test_a_long_list_is_cut_and_all_shows_it(house, monkeypatch):
    plan = ("plan", "edge.tide", "--as-of", LATER, "--out", "again.json")
    whole = tidegate(house, *plan, "--diff", "--all")[1]
    monkeypatch.setattr("tidegate.commands.plan.SHOWN", 0)
    cut = tidegate(house, *plan, "--diff")[1]
    assert "more; see the saved plan" in cut
    assert "more; see the saved plan" not in whole
    assert sum(line.startswith("  - ") for line in cut.splitlines()) < sum(
        line.startswith("  - ") for line in whole.splitlines()
    )


def test_what_is_no_prefix_and_what_is_too_wide_are_said(house):
    why = ("--at", "fra2", "--plan", "later.json")
    assert "an address in it" in tidegate(house, "explain", "300.1.1.1", *why)[1]
    code, out = tidegate(house, "explain", "198.18.0.0/15", *why)
    assert (code, "measures by /24" in out) == (2, True)


marks = st.text("10.", min_size=1, max_size=128)


@given(marks=marks, step_s=st.sampled_from([60, 300, 900, 3600, 86400]), width=st.integers(1, 200))
def test_a_timeline_loses_no_window(marks, step_s, width):
    start = datetime(2026, 11, 20, tzinfo=UTC)
    lines = list(with_hours(marks, start, step_s * 10**6, width))
    assert "".join(lines[::2]) == marks
    assert all(ruler for line, ruler in zip(lines[::2], lines[1::2], strict=True) if line)
    assert sparkline(marks, [(1, 1)] * sum(mark != "." for mark in marks)).count(".") == marks.count(".")


@given(address=st.ip_addresses(v=4, network="198.18.64.0/24"))
def test_any_address_of_a_prefix_is_measured_by_it(address):
    select = check_file(ROOT / "dsl/examples/edge.tide", limits=LIMITS).policy.selects[0]
    assert measured_prefix(select, ipaddress.ip_network(address)) == "198.18.64.0/24"
