"""The Molecule scenario as a user runs it, and what it leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / "build/bin"), os.environ["PATH"]])
POPS = ("mol1", "mol2")  # containers, links and bridges all carry the name of one


def left_on_the_machine():
    """The scenario's containers and links; both outlive a process that forgets them."""
    commands = [
        ["podman", "ps", "--all", "--format", "{{.Names}}"],
        ["ip", "-oneline", "link", "show"],
    ]
    listed = [subprocess.run(each, capture_output=True, check=True, text=True).stdout for each in commands]
    return [line for text in listed for line in text.splitlines() if any(pop in line for pop in POPS)]


@pytest.mark.root
@pytest.mark.timeout(900)  # the first run on a machine makes the hosts' image
def test_the_scenario_passes_and_leaves_nothing(tmp_path):
    molecule = subprocess.run(
        ["molecule", "test"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PATH": PATH, "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert molecule.returncode == 0, molecule.stdout
    for action in ("dry_run", "converge", "idempotence", "verify", "destroy"):
        assert action in molecule.stdout
    assert left_on_the_machine() == []
    assert not list(tmp_path.glob("id_ed25519*"))
