"""The Molecule scenario of telemetry, as a user runs it."""

import pytest
from molecule_scenario import passes_and_leaves_nothing

pytestmark = [
    pytest.mark.root,
    pytest.mark.hosts,
    pytest.mark.timeout(1800),  # the first run on a machine makes the hosts' image
]


def test_the_scenario_telemetry_passes_and_leaves_nothing(tmp_path):
    actions = ("dry_run", "converge", "idempotence", "verify", "edge_logs", "uninstall", "destroy")
    passes_and_leaves_nothing("telemetry", ("tel1", "tel2"), actions, tmp_path)
