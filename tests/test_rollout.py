"""playbooks/site.yml against hosts of this machine: nothing is touched that must not be."""

import grp
import json
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tidegate.emit import render, vars_path
from tidegate.plan import generation_of

ROOT = Path(__file__).resolve().parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / "build/bin"), os.environ["PATH"]])
CLAIM = {"prefix": "198.51.100.0/24", "congestion_control": "cubic"}
NO_AGENT = {"congestion_control_agent": ["/nowhere/tidegate-agent"]}
BROKEN_AGENT = {"congestion_control_agent": [sys.executable, "-m", "no_such_agent"]}
OWN = {"one": "198.18.1.0/24", "two": "198.18.2.0/24"}


def run(*command):
    environment = {
        **os.environ,
        "PATH": PATH,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    }
    return subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def collection_path():
    """Let tidegate.edge mean this checkout, as ansible.cfg expects."""
    assert run("playbooks/link-collection.sh").returncode == 0


class Fleet:
    """Two POPs of one host each, both this machine; the steering files are the test's."""

    def __init__(self, folder: Path) -> None:
        self.inventory = folder / "inventory"
        self.steering_folder = folder / "steering"
        self.steering_folder.mkdir()
        self.inventory.mkdir()
        pops = {
            f"pop_{pop}": {
                "hosts": {f"{pop}-edge1": {}},
                "vars": {"tidegate_pop": pop, "tidegate_own_prefixes": [own]},
            }
            for pop, own in OWN.items()
        }
        shared = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "congestion_control_agent": [str(Path(sys.executable).parent / "tidegate-agent")],
            "congestion_control_group": grp.getgrgid(os.getegid()).gr_name,
            "congestion_control_owner": pwd.getpwuid(os.geteuid()).pw_name,
            "congestion_control_state_directory": str(folder / "state"),
            "congestion_control_steering_file": str(self.steering_folder / "{{ tidegate_pop }}.json"),
        }
        hosts = {
            "all": {
                "vars": {"tidegate_origins": ["198.18.255.0/24"]},
                "children": {"pops": {"vars": shared, "children": {"europe": {"children": pops}}}},
            }
        }
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(hosts))

    def claims(self, **claims_by_pop: list) -> None:
        """Generate the variables of the POPs named."""
        nothing = {"control_claims": [], "control_hosts": [], "learn": None}
        told = {pop: {"claims": claims, **nothing} for pop, claims in claims_by_pop.items()}
        for pop, claims in claims_by_pop.items():
            document = {
                **told[pop],
                "changes": {
                    "added": [claim["prefix"] for claim in claims],
                    "removed": [],
                    "withdrawn": [],
                },
                "generation": generation_of(told),
                "policy_digest": f"sha256:{0:064}",
                "pop": pop,
                "previous_generation": None,
                "schema_version": 1,
                "watermark": "2026-11-21T00:00:00Z",
            }
            path = vars_path(self.inventory, pop)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(document))

    def roll_out(self, *arguments: str) -> subprocess.CompletedProcess:
        return run("ansible-playbook", "--inventory", self.inventory, "playbooks/site.yml", *arguments)

    def written(self) -> list[Path]:
        return list(self.steering_folder.iterdir())


@pytest.fixture
def fleet(tmp_path):
    return Fleet(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--check"], ["--limit", "one-edge1"], ["--tags", "none"]],
    ids=["plain", "check", "limit", "tags"],
)
def test_a_denied_generation_reaches_no_host(fleet, arguments):
    fleet.claims(one=[CLAIM], two=[CLAIM, {**CLAIM, "prefix": OWN["one"]}])
    ran = fleet.roll_out("--extra-vars", json.dumps(NO_AGENT), *arguments)
    assert ran.returncode != 0
    assert f"- two {OWN['one']}: " in ran.stdout
    assert "Roll out to one host" not in ran.stdout
    assert fleet.written() == []


def test_an_inventory_without_variables_reaches_no_host(fleet):
    ran = fleet.roll_out("--check")
    assert ran.returncode != 0
    assert "no host was touched" in ran.stdout


def test_a_pop_without_variables_is_left_as_it_is_while_the_others_roll_out(fleet):
    fleet.claims(one=[CLAIM])
    ran = fleet.roll_out("--check", "--diff")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "No variables were generated for POP two" in ran.stdout
    assert '+            "prefix": "198.51.100.0/24"' in ran.stdout
    assert fleet.written() == []


def test_the_canary_is_a_host_that_has_something_to_do(fleet):
    hosts = fleet.inventory / "hosts.yml"
    inventory = yaml.safe_load(hosts.read_text())
    pops = inventory["all"]["children"]["pops"]["children"]["europe"]["children"]
    pops["pop_two"]["hosts"]["two-edge2"] = {}
    hosts.write_text(yaml.safe_dump(inventory))
    fleet.claims(two=[CLAIM])
    ran = fleet.roll_out("--extra-vars", json.dumps(NO_AGENT))
    assert ran.returncode != 0
    assert "fatal: [two-edge1]" in ran.stdout
    assert "fatal: [two-edge2]" not in ran.stdout
    assert fleet.written() == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (NO_AGENT, "`/nowhere/tidegate-agent` is not on this host"),
        (BROKEN_AGENT, "-m no_such_agent` is not on this host or does not start"),
        ({"tidegate_pop": "three"}, "this host is in POP three"),
    ],
    ids=["no agent", "an agent that does not start", "another POP"],
)
def test_the_role_refuses_before_it_changes_anything(fleet, variables, message):
    fleet.claims(one=[CLAIM], two=[CLAIM])
    ran = fleet.roll_out("--check", "--limit", "one-edge1", "--extra-vars", json.dumps(variables))
    assert ran.returncode != 0
    assert message in " ".join(ran.stdout.split())
    assert "Write the steering file" not in ran.stdout


def test_a_steering_file_that_the_agent_refuses_is_not_written(fleet):
    fleet.claims(one=[CLAIM])
    ran = fleet.roll_out(
        "--limit", "one-edge1", "--extra-vars", '{"congestion_control_default": "Not-A-Name"}'
    )
    assert ran.returncode != 0
    assert "Not-A-Name" in ran.stdout
    assert fleet.written() == []


def steering(fleet, tmp_path, told) -> dict[str, bytes]:
    """The steering file of each host, as the role's template makes it of variables."""
    path = f"{tmp_path}/{{{{ inventory_hostname }}}}.json"
    template = f"src=roles/congestion_control/templates/steering.json.j2 dest={path} mode=0644"
    given = {
        "congestion_control_vars": told,
        "congestion_control_default": None,
        "congestion_control_learn": True,
    }
    variables = json.dumps(given)
    ran = run("ansible", "-i", fleet.inventory, "pops", "-m", "template", "-a", template, "-e", variables)
    assert ran.returncode == 0, ran.stdout
    return {path.stem: path.read_bytes() for path in tmp_path.glob("*-edge1.json")}


TOLD = {
    "generation": "0123456789abcdef",
    "claims": [CLAIM],
    "control_claims": [],
    "control_hosts": [],
    "learn": None,
}


def test_the_same_claims_give_the_same_steering_file_that_the_agent_accepts(fleet, tmp_path):
    texts = steering(fleet, tmp_path, TOLD)
    again = steering(fleet, tmp_path, TOLD | {"claims": [dict(reversed(CLAIM.items()))]})
    assert texts == again
    assert texts["one-edge1"] == texts["two-edge1"]
    assert json.loads(texts["one-edge1"])["claims"] == [CLAIM]
    assert run("tidegate-agent", "check", tmp_path / "one-edge1.json").returncode == 0


def test_a_control_host_gets_the_claims_of_control_hosts_and_no_other_does(fleet, tmp_path):
    told = TOLD | {
        "claims": [CLAIM | {"initcwnd": 20}],
        "control_claims": [{"prefix": CLAIM["prefix"], "initcwnd": 20}],
        "control_hosts": ["two-edge1"],
    }
    texts = steering(fleet, tmp_path, told)
    assert json.loads(texts["one-edge1"])["claims"] == told["claims"]
    assert json.loads(texts["two-edge1"])["claims"] == told["control_claims"]


@pytest.fixture
def three(fleet):
    """A fleet of three hosts, and how to take some of them down: real ssh to where nobody listens."""
    path = fleet.inventory / "hosts.yml"
    inventory = yaml.safe_load(path.read_text())
    pops = inventory["all"]["children"]["pops"]["children"]["europe"]["children"]
    pops["pop_two"]["hosts"]["two-edge2"] = {}
    hosts = {name: known for pop in pops.values() for name, known in pop["hosts"].items()}
    fleet.claims(one=[CLAIM], two=[CLAIM])
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens: a connection is refused
        port = nobody.getsockname()[1]

        def down(*names):
            for name in names:
                hosts[name].update(ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=port)
            path.write_text(yaml.safe_dump(inventory))
            return fleet

        yield down


def would_write(ran):
    return {name for name in ("one-edge1", "two-edge1", "two-edge2") if f"changed: [{name}]" in ran.stdout}


def test_a_host_that_is_down_is_left_out_the_others_go_on_and_the_run_fails_for_it(three):
    ran = three("one-edge1").roll_out("--check")  # it would be the canary
    assert ran.returncode != 0
    assert would_write(ran) == {"two-edge1", "two-edge2"}, ran.stdout
    assert "fatal: [one-edge1]" in ran.stdout
    assert "This host does not answer, and keeps what it has" in " ".join(ran.stdout.split())


def test_two_that_are_down_stop_the_run_before_a_host_is_changed(three):
    ran = three("one-edge1", "two-edge1").roll_out("--check")
    assert ran.returncode != 0
    assert "2 hosts do not answer: one-edge1, two-edge1" in " ".join(ran.stdout.split())
    assert would_write(ran) == set()


def test_two_may_be_down_where_the_operator_says_so(three):
    fleet = three("one-edge1", "two-edge1")
    ran = fleet.roll_out("--check", "--extra-vars", json.dumps({"tidegate_may_be_down": 2}))
    assert ran.returncode != 0
    assert would_write(ran) == {"two-edge2"}, ran.stdout
