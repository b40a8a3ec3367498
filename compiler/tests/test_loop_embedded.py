"""The commands as a user runs them, on the simulated fleet and the embedded engine, and what damage does to them."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tidegate.characters import Character, characters
from tidegate.contracts import validate
from tidegate_dsl import read_fleet

ROOT = Path(__file__).resolve().parents[2]
AS_OF = "2026-11-20T06:01:00Z"
POLICY = "dsl/examples/edge.tide"


def tidegate(directory, *arguments, **environment):
    """Run the installed command; (exit code, stdout, stderr)."""
    done = subprocess.run(
        [Path(sys.executable).parent / "tidegate", *map(str, arguments)],
        cwd=directory, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def copy_house(directory):
    """The example policy and inventory, where they may be written to."""
    shutil.copytree(ROOT / "inventory", directory / "inventory", ignore=shutil.ignore_patterns("group_vars"))
    (directory / "dsl/examples").mkdir(parents=True)
    shutil.copy(ROOT / POLICY, directory / POLICY)
    return directory


def written(directory):
    """{path: bytes} of all generated variables."""
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in directory.glob("inventory/group_vars/**/*.yml")
    }


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory):
    """Six simulated hours, loaded once into one store; every test has a state directory of its own."""
    directory = copy_house(tmp_path_factory.mktemp("house") / "house")
    code, out, _ = tidegate(directory, "simulate", "--inventory", "inventory", "--out", "telemetry")
    assert code == 0
    assert len(out.splitlines()) == 4
    code, _, err = tidegate(directory, "ingest", *sorted(directory.glob("telemetry/*.pb")))
    assert code == 0, err
    return directory


@pytest.fixture
def house(telemetry, tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_DSN", f"chdb://{telemetry / '.tidegate/telemetry'}")
    return copy_house(tmp_path / "house")


@pytest.fixture
def truth(telemetry):
    """{POP: {prefix: character}} of the simulation."""
    return characters(read_fleet(telemetry / "inventory"), seed=1)


def plan(directory, *options):
    code, out, err = tidegate(
        directory, "plan", POLICY, "--as-of", AS_OF, "--out", "plan.json", "--json", *options
    )
    assert code == 0, out + err
    return json.loads(out)


def test_plan_apply_and_plan_again(house, truth):
    made = plan(house)
    validate(made["plan"], "plan", "plan.json")
    assert made["guard"] == {"allow": True, "denials": []}
    assert {pop for pop, body in made["plan"]["pops"].items() if body["decisions"]} == {
        "ams1",
        "fra2",
        "sin1",
    }
    for pop, body in made["plan"]["pops"].items():
        chosen = {d["prefix"] for d in body["decisions"]} | {d["prefix"] for d in body["deferred"]}
        if body["decisions"]:
            assert chosen == {
                p for p, character in truth[pop].items() if character is Character.SLOW_AND_LOSSY
            }
        control = {d["prefix"] for d in body["decisions"] if d["arm"] == "held_out"}
        assert {c["prefix"] for c in body["claims"]} == chosen - control

    code, out, _ = tidegate(house, "apply", "plan.json", "--json")
    assert code == 0
    assert {f["pop"] for f in json.loads(out)["files"]} == set(made["plan"]["pops"])
    files = written(house)
    for text in files.values():
        validate(yaml.safe_load(text)["tidegate_vars"], "vars", "written")
    again = plan(house)["plan"]
    assert again["generation"] == again["previous_generation"] == made["plan"]["generation"]
    assert "Nothing changes" in tidegate(house, "plan", POLICY, "--as-of", AS_OF)[1]
    assert tidegate(house, "apply", "plan.json")[0] == 0
    assert written(house) == files
    assert tidegate(house, "guard", "--inventory", "inventory")[0] == 0


def test_two_machines_write_the_same_bytes(house, tmp_path):
    other = tmp_path / "elsewhere"
    shutil.copytree(house, other)
    for directory, zone in ((house, "UTC"), (other, "Asia/Tokyo")):
        code, _, err = tidegate(
            directory,
            "plan",
            POLICY,
            "--as-of",
            AS_OF,
            "--out",
            "plan.json",
            TZ=zone,
            PYTHONHASHSEED="7",
            LC_ALL="C",
        )
        assert code == 0, err
        assert tidegate(directory, "apply", "plan.json")[0] == 0
    assert written(house) == written(other) != {}


def test_explain_names_each_clause(house, truth):
    pops = plan(house)["plan"]["pops"]
    pop, prefix = next((pop, d["prefix"]) for pop, body in pops.items() for d in body["decisions"])
    code, out, _ = tidegate(house, "explain", prefix, "--at", pop, "--plan", "plan.json", "--json")
    assert code == 0
    (found,) = json.loads(out)
    assert found["qualifies"]
    assert all(clause["passed"] for clause in found["clauses"])
    assert len(found["timeline"]) == 72
    assert found["decision"]["prefix"] == prefix
    text = tidegate(house, "explain", prefix, "--at", pop, "--plan", "plan.json")[1]
    assert "pass       require duty_cycle >= 60%" in text
    flapping = next(p for p, character in truth[pop].items() if character is Character.FLAPPING)
    code, out, _ = tidegate(house, "explain", flapping, "--at", pop, "--plan", "plan.json", "--json")
    (found,) = json.loads(out)
    assert not found["qualifies"]
    assert [c["passed"] for c in found["clauses"]].count(False) >= 1
    assert tidegate(house, "explain", prefix, "--at", "nowhere", "--plan", "plan.json")[0] == 2
    assert tidegate(house, "explain", "300.0.0.0/24", "--at", pop, "--plan", "plan.json")[0] == 2


def refused(directory, code, *arguments, words=(), **environment):
    """The command ends with `code`, says `words`, and has written nothing."""
    before = written(directory)
    found, out, err = tidegate(directory, *arguments, **environment)
    assert found == code, out + err
    for word in words:
        assert word in err + out, err + out
    assert written(directory) == before


def test_an_edited_plan_is_refused(house):
    plan(house)
    text = (house / "plan.json").read_text()
    (house / "plan.json").write_text(text.replace('"bbr"', '"cubic"', 1))
    refused(house, 1, "apply", "plan.json", words=("plan.json", "edited"))
    (house / "plan.json").write_text(text[: len(text) // 2])
    refused(house, 2, "apply", "plan.json", words=("plan.json:", "not JSON"))
    refused(house, 2, "apply", "missing.json", words=("missing.json", "No such file"))


def test_a_stale_plan_is_refused(house):
    plan(house)
    policy = house / POLICY
    policy.write_text(policy.read_text() + "# reviewed\n")
    refused(house, 1, "apply", "plan.json", words=("stale", "edge.tide changed"))


def test_a_plan_against_another_generation_is_refused(house):
    plan(house)
    shutil.copy(house / "plan.json", house / "old.json")
    policy = house / POLICY
    policy.write_text(policy.read_text().replace("100 KB", "150 KB"))
    plan(house)
    assert tidegate(house, "apply", "plan.json")[0] == 0
    refused(house, 1, "apply", "old.json", words=("stale", "made against generation none"))


def test_a_denied_plan_is_refused(house):
    """The inventory's own prefix grows over a client's: OPA, not the compiler, says no."""
    made = plan(house)["plan"]
    prefix = next(c["prefix"] for body in made["pops"].values() for c in body["claims"])
    hosts = house / "inventory/hosts.yml"
    inventory = yaml.safe_load(hosts.read_text())
    inventory["all"]["vars"]["tidegate_origins"].append(prefix)
    hosts.write_text(yaml.safe_dump(inventory))
    refused(house, 1, "plan", POLICY, "--as-of", AS_OF, "--out", "denied.json", words=("own_prefix", prefix))
    refused(house, 1, "apply", "denied.json", words=("own_prefix", prefix))


def test_without_opa_nothing_is_allowed(house):
    plan(house)
    refused(house, 3, "--opa", "no-such-opa", "apply", "plan.json", words=("no-such-opa",))
    refused(house, 3, "--opa", "no-such-opa", "plan", POLICY, "--as-of", AS_OF, words=("no-such-opa",))


def test_an_unreachable_server_is_named(house):
    refused(house, 3, "--dsn", "http://nobody@127.0.0.1:1/default", "plan", POLICY, words=("127.0.0.1",))


def test_stale_telemetry_is_denied(house):
    refused(house, 1, "plan", POLICY, "--as-of", "2026-11-20T09:00:00Z", words=("stale_telemetry",))


def test_no_telemetry_is_said(tmp_path):
    house = copy_house(tmp_path / "house")
    refused(house, 2, "plan", POLICY, words=("no telemetry", "tidegate ingest"))


def test_damaged_variables_are_named(house):
    plan(house)
    assert tidegate(house, "apply", "plan.json")[0] == 0
    path = next(house.glob("inventory/group_vars/pop_fra2/tidegate.yml"))
    path.write_text(path.read_text()[:200] + "\n  - [")
    refused(house, 2, "guard", "--inventory", "inventory", words=("pop_fra2/tidegate.yml:",))


def test_a_held_state_directory_is_said(house):
    (house / ".tidegate").mkdir()
    with (house / ".tidegate/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(house, 3, "plan", POLICY, "--as-of", AS_OF, words=("another tidegate command",))


def test_variables_of_an_unknown_generation_are_not_planned_over(house):
    """Without the applied plan the guard could not see that a selection shrinks to nothing."""
    plan(house)
    assert tidegate(house, "apply", "plan.json")[0] == 0
    (house / ".tidegate/applied.json").unlink()
    again = ("plan", POLICY, "--as-of", AS_OF, "--out", "again.json")
    refused(house, 1, *again, words=("holds variables of generation", "--state"))
    assert tidegate(house, "apply", "plan.json")[0] == 0  # as after a crash before the last rename
    assert tidegate(house, *again)[0] == 0


def test_apply_repairs_damaged_variables_and_removes_those_of_a_pop_that_left(house):
    plan(house)
    assert tidegate(house, "apply", "plan.json")[0] == 0
    whole = written(house)
    path = house / "inventory/group_vars/pop_fra2/tidegate.yml"
    document = yaml.safe_load(path.read_text())
    document["tidegate_vars"]["changes"]["removed"] = [document["tidegate_vars"]["claims"][0]["prefix"]]
    path.write_text(yaml.safe_dump(document))
    assert tidegate(house, "guard", "--inventory", "inventory")[0] == 1
    (house / "inventory/group_vars/pop_ams1/tidegate.yml").write_text("torn")
    plan(house)
    assert tidegate(house, "apply", "plan.json")[0] == 0
    assert tidegate(house, "guard", "--inventory", "inventory")[0] == 0
    assert written(house).keys() == whole.keys()

    hosts = house / "inventory/hosts.yml"
    inventory = yaml.safe_load(hosts.read_text())
    del inventory["all"]["children"]["pops"]["children"]["asia"]
    hosts.write_text(yaml.safe_dump(inventory))
    plan(house)
    assert "removed   inventory/group_vars/pop_sin1" in tidegate(house, "apply", "plan.json")[1]
    assert tidegate(house, "guard", "--inventory", "inventory/hosts.yml")[0] == 0


def test_a_plan_is_saved_over_nothing_else(house):
    policy = (house / POLICY).read_bytes()
    refused(
        house, 2, "plan", POLICY, "--as-of", AS_OF, "--out", POLICY, words=("something else than a plan",)
    )
    assert (house / POLICY).read_bytes() == policy
    applied = ".tidegate/applied.json"
    refused(house, 2, "plan", POLICY, "--as-of", AS_OF, "--out", applied, words=("tidegate apply",))
    assert not (house / applied).exists()


def test_explain_answers_for_what_was_decided(house):
    pops = plan(house)["plan"]["pops"]
    pop, prefix = next((pop, d["prefix"]) for pop, body in pops.items() for d in body["decisions"])
    why = ("--at", pop, "--plan", "plan.json")
    address = prefix.split("/")[0]
    assert tidegate(house, "explain", address, *why)[1].startswith(f"{prefix} at {pop}")
    refused(house, 2, "explain", "198.18.0.0/15", *why, words=("measures by /24",))
    policy = house / POLICY
    policy.write_text(policy.read_text().replace("bottom 20%", "bottom 21%"))
    refused(house, 1, "explain", prefix, *why, words=("changed since",))


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", POLICY, "--grace", "99999999999"),
        ("plan", POLICY, "--as-of", "9999-12-31T23:59:59Z"),
        ("simulate", "--inventory", "inventory", "--out", "out", "--hours", "nan"),
        ("simulate", "--inventory", "inventory", "--out", "out", "--hours", "1e300"),
        ("apply", "nested.json"),
        ("apply", "digits.json"),
    ],
    ids=" ".join,
)
def test_numbers_and_nesting_out_of_range_are_said(tmp_path, arguments):
    house = copy_house(tmp_path / "house")
    (house / "nested.json").write_text("[" * 100_000)
    (house / "digits.json").write_text("1" * 5000)
    refused(house, 2, *arguments, words=("rror",))


def test_output_that_cannot_be_written_is_no_answer(house):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [Path(sys.executable).parent / "tidegate", "fleet", "--inventory", "inventory"],
            cwd=house, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        3,
        "error: the output cannot be written: No space left on device\n",
    )


def test_the_newest_plans_are_kept(house):
    plans = house / ".tidegate/plans"
    plans.mkdir(parents=True)
    for day in range(1, 31):
        for hour in range(24):
            (plans / f"202601{day:02}T{hour:02}0000Z-{'0' * 16}.json").write_text("{}")
    assert tidegate(house, "plan", POLICY, "--as-of", AS_OF)[0] == 0
    kept = sorted(path.name for path in plans.iterdir())
    assert len(kept) == 300
    assert kept[-1].startswith("20261120T060000Z-")


def test_every_command_has_help_with_an_example(tmp_path):
    code, out, _ = tidegate(tmp_path, "--help")
    assert code == 0
    commands = [
        line.split()[0]
        for line in out.split("Commands:")[1].split("\n\n")[0].splitlines()
        if re.match(r"  \w", line)
    ]
    assert {"check", "ingest", "plan", "apply", "explain", "guard", "fleet", "simulate"} <= set(commands)
    for command in commands:
        code, out, _ = tidegate(tmp_path, command, "--help")
        assert code == 0
        assert f"tidegate {command} " in out
