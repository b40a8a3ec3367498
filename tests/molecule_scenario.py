"""A Molecule scenario as a user runs it, and what it leaves behind.

Each scenario is tested in a file of its own: files run beside each other.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / "build/bin"), os.environ["PATH"]])


def on_the_machine(names):
    """Containers, links and bridges that carry one of the names; all outlive a process that forgets them."""
    commands = [
        ["podman", "ps", "--all", "--format", "{{.Names}}"],
        ["ip", "-oneline", "link", "show"],
    ]
    listed = [subprocess.run(each, capture_output=True, check=True, text=True).stdout for each in commands]
    return [line for text in listed for line in text.splitlines() if any(name in line for name in names)]


def passes_and_leaves_nothing(scenario, names, actions, ephemeral):
    """Assert it; containers, links and bridges all carry one of the names."""
    molecule = subprocess.run(
        ["molecule", "test", "--scenario-name", scenario],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PATH": PATH, "MOLECULE_EPHEMERAL_DIRECTORY": str(ephemeral), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert molecule.returncode == 0, molecule.stdout
    for told in (*actions, *names):
        assert told in molecule.stdout
    assert on_the_machine(names) == []
    assert not list(ephemeral.glob("id_ed25519*"))
