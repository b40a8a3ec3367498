"""Riptide in the daemon: what connections reached becomes a route for new ones."""

import json
import time

import pytest
from tidegate_edge.steer.boottime import boot_id

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


HOUR_US = 3600 * 10**6


@pytest.mark.parametrize(
    ("boot", "ago_us", "windows"),
    [(boot_id(), 0, [40]), (boot_id(), HOUR_US, []), ("another", 0, [])],
    ids=["just now", "an hour ago", "before a reboot"],
)
def test_a_start_goes_on_with_what_was_learned_unless_it_is_too_old(daemon, boot, ago_us, windows):
    now_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    learned = {"prefix": CLIENT, "initcwnd": 40, "held_out": False, "age_us": 0}
    kept = {"boot": boot, "at_us": now_us - ago_us, "by": "host", "destinations": [learned], "counts": {}}
    state = daemon.host.directory / "state"
    state.mkdir()
    (state / "learned.json").write_text(json.dumps(kept))
    daemon.start()
    daemon.host.steer(learn=LEARN)
    daemon.apply()
    daemon.awaits(lambda: daemon.status()["learned"])
    assert [each["initcwnd"] for each in daemon.status()["learned"]["destinations"]] == windows
    assert [each["metrics"] for each in daemon.host.routes("198.18.7.1")] == [
        [{"initcwnd": each}] for each in windows
    ]


def test_a_generation_with_other_bounds_holds_no_window_of_the_one_before(daemon, transfer):
    host = daemon.host
    daemon.start()
    host.steer(learn=LEARN | {"initcwnd_min": 50})
    daemon.apply()
    daemon.awaits(lambda: transfer.flows() and host.routes("198.18.7.1"))
    host.steer(learn=LEARN | {"initcwnd_max": 20, "every_us": HOUR_US}, generation="2222222222222222")
    assert daemon.apply()["after"] == []
    daemon.awaits(lambda: [each["initcwnd"] for each in daemon.status()["learned"]["destinations"]] == [20])
    daemon.awaits(lambda: host.routes("198.18.7.1") and host.settings("198.18.7.1")["initcwnd"] == 20)
