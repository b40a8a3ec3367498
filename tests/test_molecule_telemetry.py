"""The Molecule scenario of telemetry, as a user runs it."""

from hashlib import sha1

import pytest
from molecule_scenario import ROOT, passes_and_leaves_nothing

pytestmark = [
    pytest.mark.root,
    pytest.mark.hosts,
    pytest.mark.timeout(1800),  # the first run on a machine makes the hosts' image
]


def test_the_scenario_telemetry_passes_and_leaves_nothing(tmp_path):
    actions = ("dry_run", "converge", "idempotence", "verify", "edge_logs", "uninstall", "destroy")
    checkout = sha1(str(ROOT).encode(), usedforsecurity=False).hexdigest()[
        :5
    ]  # as the scenario's inventory has it
    passes_and_leaves_nothing("telemetry", (f"tt-{checkout}",), actions, tmp_path)
