"""A trial from plan to plan: schedule, guard, experiment and windows, before Open Policy Agent and in variables."""

from dataclasses import replace
from datetime import timedelta

import pytest
from decision_inputs import CLAUSE, NOW, PREFIXES, decided, measured, policy, prior, rule
from tidegate.contracts import sha256_digest
from tidegate.emit import emit, read_vars
from tidegate.fleet import fleet_document
from tidegate.guard import judge, plan_document
from tidegate.plan import build, load, save, vars_of
from tidegate_dsl.model import Abort, Active, Bound, Clause, Experiment, Guard, Initcwnd

GUARD = Guard(
    name="brake",
    clause=CLAUSE,
    watch="bbr",
    aborts=(Abort("delivery_rate", 50, "<", 900_000, Clause(31, "abort")),),
    min_per_arm=None,
    max_churn=Bound(500_000, Clause(33, "limit churn <= 50% per run")),
    release_us=6 * 3600 * 10**6,
    on_failure=Clause(34, "on_failure release for 6h"),
)
TRIAL = policy(
    rule(active=Active(NOW - timedelta(days=1), NOW + timedelta(hours=1), Clause(12, "active A until B"))),
    guards=(GUARD,),
    experiments=(Experiment("trial", CLAUSE, "bbr", 250_000, 0),),
    initcwnds=(Initcwnd("wide", CLAUSE, ("0.0.0.0/0", PREFIXES[0], "::/0"), ("ams1", "fra2"), 30),),
)
FOUND = [measured(pop, prefix, 9) for pop in ("ams1", "fra2") for prefix in PREFIXES]


def made(previous, *, at=NOW, a_policy=TRIAL, before=None, qualifying=(), seen=()):
    """The next plan; `before` stands for older decisions of the plan before."""
    before = before if before is not None else previous.decisions() if previous else ()
    states = previous.guards() if previous else ()
    outcome = decided(a_policy, before, qualifying=qualifying, previous=seen, at=at, guards=states)
    return build(
        a_policy,
        outcome,
        {},
        previous,
        fleet_digest=sha256_digest(fleet_document(a_policy.fleet)),
        as_of=at,
        created_at=at,
        watermark=at,
        telemetry={},
    )


def said(plan):
    """The codes with which OPA denies a plan."""
    document = plan_document(
        vars_by_pop={pop: vars_of(plan, pop) for pop in plan.pops},
        fleet=fleet_document(TRIAL.fleet),
        as_of=plan.document["as_of"],
        watermark=plan.document["watermark"],
    )
    verdict = judge(document)
    assert verdict.allow == (not verdict.denials)
    return {denial.code for denial in verdict.denials}


@pytest.fixture
def first():
    return made(None, qualifying=FOUND)


def test_what_control_hosts_are_told_passes_the_guard_and_windows_are_no_change(first):
    assert said(first) == set()
    for pop in first.pops.values():
        assert [c["prefix"] for c in pop["control_claims"]] == ["0.0.0.0/0", PREFIXES[0], "::/0"]
        assert len(pop["control_hosts"]) == 1
        assert pop["changes"] == {"added": list(PREFIXES), "removed": [], "withdrawn": []}
        assert len(pop["claims"]) == len(PREFIXES) + 2


def test_the_end_of_a_schedule_empties_a_pop_with_the_guards_consent_and_broken_telemetry_does_not(first):
    ended = made(first, at=NOW + timedelta(hours=1), qualifying=FOUND)
    assert said(ended) == set()
    for pop in ended.pops.values():
        assert pop["changes"]["withdrawn"] == pop["changes"]["removed"] == list(PREFIXES)
        assert (pop["control_claims"], pop["control_hosts"]) == ([], [])
        assert [c["prefix"] for c in pop["claims"]] == ["0.0.0.0/0", PREFIXES[0], "::/0"]
    gentle = replace(TRIAL, guards=(), applies=(replace(TRIAL.applies[0], active=None),))
    broken = made(first, at=NOW + timedelta(hours=3), a_policy=gentle)
    assert said(broken) == {"empty_selection"}


def test_an_abort_is_remembered_by_the_plan_through_its_file(first, tmp_path):
    old = [prior("ams1", prefix, hours=0.1, admitted_hours=9) for prefix in PREFIXES[:4]]
    before = [replace(d, arm="held_out") if d.prefix == PREFIXES[3] else d for d in old]
    seen = [measured("ams1", d.prefix, 9 if d.arm == "held_out" else 1) for d in before]
    aborted = made(first, before=before, seen=seen, qualifying=seen)
    (state,) = aborted.pops["ams1"]["guards"]
    assert (state["guard"], state["rule"], state["state"], state["since"]) == (
        "brake", "bbr", "released", aborted.document["watermark"],
    )  # fmt: skip
    save(aborted, tmp_path / "applied.json")
    read = load(tmp_path / "applied.json")
    assert read.guards() == aborted.guards()
    later = made(read, at=NOW + timedelta(minutes=55), qualifying=seen)
    assert later.pops["ams1"]["guards"] == [state]
    assert not later.pops["ams1"]["decisions"]
    assert {d["because"] for d in later.pops["ams1"]["deferred"]} == {state["because"]}


def test_the_generation_names_control_hosts_as_well(first):
    pops = TRIAL.fleet.pops
    renamed = replace(pops[0], hosts=tuple(f"new-{host}" for host in pops[0].hosts))
    moved = replace(TRIAL, fleet=replace(TRIAL.fleet, pops=(renamed, *pops[1:])))
    assert made(None, a_policy=moved, qualifying=FOUND).generation != first.generation


def test_variables_of_a_trial_are_written_once_and_again_after_an_edit(first, tmp_path):
    assert {each.action for each in emit(first, tmp_path)} == {"wrote"}
    assert {each.action for each in emit(first, tmp_path)} == {"unchanged"}
    path = emit(first, tmp_path)[0].path
    text = path.read_text()
    host = first.pops["ams1"]["control_hosts"][0]
    path.write_text(text.replace(f"control_hosts:\n  - {host}\n", "control_hosts: []\n"))
    assert read_vars(tmp_path)["ams1"]["control_hosts"] == []
    assert [each.action for each in emit(first, tmp_path)] == ["wrote", "unchanged"]
    assert path.read_text() == text
