"""The Molecule scenarios as a user runs them, and what they leave behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / "build/bin"), os.environ["PATH"]])
# Containers, links and bridges all carry the name of one of the scenario's POPs.
SCENARIOS = {
    "default": (
        ("mol1", "mol2"),
        ("dry_run", "converge", "idempotence", "verify", "lifecycle", "stop", "uninstall", "destroy"),
    ),
    "telemetry": (
        ("tel1", "tel2"),
        ("dry_run", "converge", "idempotence", "verify", "edge_logs", "uninstall", "destroy"),
    ),
}


def left_on_the_machine(pops):
    """A scenario's containers and links; both outlive a process that forgets them."""
    commands = [
        ["podman", "ps", "--all", "--format", "{{.Names}}"],
        ["ip", "-oneline", "link", "show"],
    ]
    listed = [subprocess.run(each, capture_output=True, check=True, text=True).stdout for each in commands]
    return [line for text in listed for line in text.splitlines() if any(pop in line for pop in pops)]


@pytest.mark.root
@pytest.mark.hosts
@pytest.mark.timeout(1800)  # the first run on a machine makes the hosts' image
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenario_passes_and_leaves_nothing(tmp_path, scenario):
    pops, actions = SCENARIOS[scenario]
    molecule = subprocess.run(
        ["molecule", "test", "--scenario-name", scenario],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PATH": PATH, "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert molecule.returncode == 0, molecule.stdout
    for action in actions:
        assert action in molecule.stdout
    assert left_on_the_machine(pops) == []
    assert not list(tmp_path.glob("id_ed25519*"))
