"""The Molecule scenario of the agent, as a user runs it."""

import pytest
from molecule_scenario import passes_and_leaves_nothing

pytestmark = [
    pytest.mark.root,
    pytest.mark.hosts,
    pytest.mark.timeout(1800),  # the first run on a machine makes the hosts' image
]


def test_the_scenario_default_passes_and_leaves_nothing(tmp_path):
    actions = ("dry_run", "converge", "idempotence", "verify", "lifecycle", "stop", "uninstall", "destroy")
    passes_and_leaves_nothing("default", ("mol1", "mol2"), actions, tmp_path)
