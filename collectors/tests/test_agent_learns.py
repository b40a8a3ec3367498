"""Riptide in the daemon: what connections reached becomes a route for new ones."""

import pytest

pytestmark = pytest.mark.root
CLIENT = "198.18.7.1/32"
LEARN = {
    "toward": ["198.18.7.0/24"],
    "initcwnd_min": 12,
    "initcwnd_max": 60,
    "smooth_ppm": 500_000,
    "every_us": 200_000,
    "expire_us": 600_000_000,
}


def test_windows_that_connections_reached_are_held_for_new_ones(daemon, transfer):
    host = daemon.host
    daemon.start()
    host.steer(learn=LEARN)
    daemon.apply()
    daemon.awaits(lambda: transfer.flows() and (daemon.status()["learned"] or {}).get("destinations"))
    daemon.awaits(lambda: host.routes("198.18.7.1"))
    assert 12 <= host.settings("198.18.7.1")["initcwnd"] <= 60
    (learned,) = daemon.status()["learned"]["destinations"]
    assert learned["prefix"] == CLIENT
    assert daemon.ask("why", peer="198.18.7.1").document["because"] == {"initcwnd": f"learned for {CLIENT}"}
    host.steer()
    daemon.apply()
    daemon.awaits(lambda: not host.routes("198.18.7.1"))
    daemon.awaits(lambda: daemon.status()["learned"] is None)
    assert transfer.flows()
