"""The collection: what is shipped, and what is documented."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ROLES = sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
SHIPPED = {
    "CHANGELOG.md",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "meta",
    "playbooks",
    "plugins",
    "roles",
}


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    out = tmp_path_factory.mktemp("artifact")
    built = run("ansible-galaxy", "collection", "build", "--output-path", out)
    assert built.returncode == 0, built.stderr
    (path,) = out.iterdir()
    with tarfile.open(path) as archive:
        yield archive


def test_the_artifact_holds_the_collection_and_nothing_else(artifact):
    names = {Path(name) for name in artifact.getnames()}
    assert {name.parts[0] for name in names} <= SHIPPED
    assert Path("plugins/modules/steering.py") in names
    assert Path("roles/congestion_control/templates/steering.json.j2") in names
    assert Path("roles/agent/files/tidegate-agent.service") in names
    assert {name for name in names if name.suffix == ".sh"} == {
        Path("roles/edge_software/files/older-services.sh"),
        Path("roles/kernel_defaults/files/kernel-defaults.sh"),
    }
    assert not [name for name in names if "__pycache__" in name.parts]


def test_the_artifact_names_the_version_of_the_distributions(artifact):
    manifest = json.load(artifact.extractfile("MANIFEST.json"))["collection_info"]
    assert (manifest["namespace"], manifest["name"]) == ("tidegate", "edge")
    assert manifest["license"] == ["Apache-2.0"]
    assert f'version = "{manifest["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_every_role_says_what_it_takes():
    assert [role.name for role in ROLES] == sorted(
        path.name for path in (ROOT / "roles").iterdir() if path.is_dir()
    )


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_of_a_role_is_specified_with_its_default_and_documented(role):
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    options, defaults = specs["options"], yaml.safe_load((role / "defaults/main.yml").read_text())
    lines = (role / "README.md").read_text().splitlines()
    table = [line for line in lines if line.startswith(f"| `{role.name}_")]
    assert [line.split("`")[1] for line in table] == list(options) == list(defaults)
    # What is taken from other variables is told in words.
    stated = {name: value for name, value in defaults.items() if "{{" not in str(value)}
    assert stated == {name: options[name].get("default") for name in stated}
    assert all(option["description"] and option["type"] for option in options.values())
    types = {line.split("`")[1]: line.split("|")[2].split()[0] for line in table}
    assert types == {name: option["type"] for name, option in options.items()}
    assert specs["short_description"]


def test_the_unit_of_the_agent_is_the_one_that_its_tests_read():
    unit = ROOT / "collectors/systemd/tidegate-agent.service"
    assert unit.resolve() == ROOT / "roles/agent/files/tidegate-agent.service"
