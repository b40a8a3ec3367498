"""The whole loop once: kernel sockets in, a tuned kernel out.

Six client prefixes fetch from two POPs; one prefix of each POP sits behind a lossy link. Collectors see it, the
policy selects it, the guard agrees, the playbook rolls it out, and its transfers become faster.
"""

import json
import tempfile
from contextlib import contextmanager
from math import sqrt
from pathlib import Path

import pytest
from tidegate_lab.afterwards import afterwards
from tidegate_lab.transfers import summary

from .control import ControlNode
from .edge import collecting, edge_hosts, steering
from .fleet import CLIENTS
from .network import network
from .traffic import traffic_for, traffic_until

pytestmark = pytest.mark.root

LOOKBACK_S = 20  # of the policy
LOSSY = [client for client in CLIENTS if client.lossy]


def test_lossy_prefixes_are_found_and_tuned_and_no_others():
    with scratch() as directory, network() as fleet, edge_hosts(fleet, directory):
        control = ControlNode(directory, fleet.control)

        before, telemetry = observe(fleet, control)
        assert set(before.algorithms) == {(client.label, "cubic") for client in CLIENTS}

        control.tidegate("ingest", *telemetry, "--json")
        planned = control.tidegate("plan", control.policy, "--grace", "0", "--json")
        assert treated(planned["plan"]) == {(client.pop, client.prefix) for client in LOSSY}
        assert {decided["observed_prefixes"] for decided in planned["plan"]["pops"].values()} == {3}
        assert planned["guard"]["allow"] is True

        control.tidegate("apply", planned["path"], "--json")
        with steering(fleet, directory):
            control.roll_out()
            after = traffic_until(fleet, transfers=10, patience_s=120)
        assert set(after.algorithms) == {
            (client.label, "bbr" if client.lossy else "cubic") for client in CLIENTS
        }
        for client in LOSSY:
            times = [summary(traffic.transfers[client.label]) for traffic in (before, after)]
            assert times[1].median_s <= times[0].median_s / 2, times

        links_did_as_they_were_told(fleet)


@contextmanager
def scratch():
    """A directory with a short name, for ssh's sockets, and no rights for others, for its keys."""
    path = tempfile.mkdtemp(prefix="loop-")
    with afterwards("rm", "-rf", path):
        yield Path(path)


def observe(fleet, control):
    """A lookback's worth of transfers with collectors running: the traffic, and the collectors' files."""
    fleet_json = control.directory / "fleet.json"
    fleet_json.write_text(json.dumps(control.tidegate("fleet", "--inventory", control.inventory)))
    with collecting(fleet, fleet_json, control.directory) as files:
        return traffic_for(fleet, LOOKBACK_S + 4), files


def treated(plan):
    """(POP, prefix) of every claim in a plan."""
    return {(pop, claim["prefix"]) for pop, decided in plan["pops"].items() for claim in decided["claims"]}


def links_did_as_they_were_told(fleet):
    """No result counts if the emulators were late, or lost more or fewer packets than they were asked to."""
    for client in CLIENTS:
        counters, _ = fleet.links[client.label].counters()
        expected = counters.offered * client.shape.loss
        deviation = sqrt(expected * (1 - client.shape.loss))  # of the binomial distribution
        assert counters.lost == pytest.approx(expected, abs=4 * deviation), client
        assert counters.late_mean_us < 2000, client
