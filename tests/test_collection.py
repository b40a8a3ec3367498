"""The collection: what is shipped, and what is documented."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ROLE = ROOT / "roles" / "congestion_control"
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
    assert not [name for name in names if "__pycache__" in name.parts or name.suffix == ".sh"]


def test_the_artifact_names_the_version_of_the_distributions(artifact):
    manifest = json.load(artifact.extractfile("MANIFEST.json"))["collection_info"]
    assert (manifest["namespace"], manifest["name"]) == ("tidegate", "edge")
    assert manifest["license"] == ["Apache-2.0"]
    assert f'version = "{manifest["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_every_variable_of_the_role_is_specified_with_its_default_and_documented():
    options = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"][
        "options"
    ]
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    table = [line for line in (ROLE / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in table] == list(options) == list(defaults)
    stated = {
        name: option.get("default") for name, option in options.items() if name != "congestion_control_vars"
    }
    assert stated == {name: defaults[name] for name in stated}
    assert all(option["description"] and option["type"] for option in options.values())
