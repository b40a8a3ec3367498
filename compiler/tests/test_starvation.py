"""Which samples count as BBR short of CPU: one that has every sign, and none that lacks one of them."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from tidegate import windows
from tidegate.select import qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl.model import Clause, Condition, Rank, Select

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
MARK = START + timedelta(minutes=5)
CLAUSE = Clause(1, "clause")
SLOW = Select(
    "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), 300 * 10**6, 300 * 10**6,
    Rank("bottom", 1_000_000, None, CLAUSE), None, None, None, None,
    (Condition("bbr_starved", ">=", 100_000, CLAUSE),), 0, None,
)  # fmt: skip


class Counted(NamedTuple):
    starved: int
    samples: int
    selected: bool


# 100 Mbit/s x 20 ms is 250,000 bytes or 173 segments of 1448 bytes; 60 of them are in flight.
STARVED = {
    "observed_at": START + timedelta(seconds=90), "pop": "ams1", "host": "pressed", "traffic_class": "client",
    "remote_prefix_length": 120, "congestion_control": "bbr", "delivery_rate": 3_000_000,
    "delivery_rate_app_limited": 0, "bbr_bw": 12_500_000, "bbr_min_rtt_us": 20_000, "bbr_cwnd_gain": 512,
    "notsent_bytes": 100_000, "ca_state": 0, "snd_mss": 1448, "unacked": 60, "snd_wnd": 3_000_000,
}  # fmt: skip

SIGNS_MISSING = {
    "the path holds little: in flight is half of it": {"unacked": 87},
    "startup": {"bbr_cwnd_gain": 739},
    "probing the round-trip time": {"bbr_cwnd_gain": 256, "unacked": 4},
    "nothing waits to be sent": {"notsent_bytes": 0},
    "a loss is being repaired": {"ca_state": 3},
    "the receiver's window is smaller than the path": {"snd_wnd": 249_999},
    "a path of less than two segments": {"bbr_bw": 144_799, "unacked": 0},
    "another algorithm": {"congestion_control": "cubic"},
    "application-limited": {"delivery_rate_app_limited": 1},
    "no bandwidth measured": {"bbr_bw": 0},
    "no round-trip time measured": {"bbr_min_rtt_us": 2**32 - 1},
    "a host at its ease": {"host": "idle"},
    "queues so short without PSI": {"host": "queued little"},
}
NOBODY_KNOWS = {
    "a host that tells nothing": {"host": "silent"},
    "the same host, minutes later": {"observed_at": START + timedelta(seconds=240)},
    "a host of the same name elsewhere": {"pop": "fra2"},
    "more than an hour before a row that claims all of time": {"host": "damaged"},
}
ALSO_STARVED = {
    "as it is": {},
    "collapsed to two segments, with none in flight": {"bbr_bw": 144_800, "unacked": 0},
    "just below half": {"unacked": 86},
    "another name of BBR": {"congestion_control": "bbr1"},
    "a kernel that does not report the window": {"snd_wnd": 0},
    "time stolen by the hypervisor": {"host": "stolen"},
    "long queues on a kernel without PSI": {"host": "queued"},
    "in the interval's first minute": {"observed_at": START + timedelta(seconds=61)},
    "a row that ends when the window is over": {"host": "seldom"},
    "an hour before the end of an interval of a day": {"host": "daily"},
}

HEALTH_COLUMNS = [
    "pop", "host", "observed_at", "interval_us", "cpu_stalled_us", "observed_us", "steal_us", "cpu_time_us",
    "run_delay_us", "cpus",
]  # fmt: skip
# Host, the interval's end and length (s), stalled, observed, stolen and all CPU time, and that on queues (us), CPUs.
HEALTH = [
    ("pressed", 120, 60, 12_000_000, 60_000_000, 0, 120_000_000, 0, 2),
    ("idle", 120, 60, 11_999_999, 60_000_000, 5_999_999, 120_000_000, 90_000_000, 2),
    ("stolen", 120, 60, 0, 0, 6_000_000, 120_000_000, 0, 2),
    ("queued", 120, 60, 0, 0, 0, 120_000_000, 24_000_000, 2),
    ("queued little", 120, 60, 0, 0, 0, 120_000_000, 23_999_999, 2),
    ("seldom", 660, 600, 300_000_000, 600_000_000, 0, 0, 0, 2),
    ("daily", 3_690, 86_400, 60_000_000, 60_000_000, 0, 0, 0, 2),
    ("damaged", 3_720, 2**44, 60_000_000, 60_000_000, 0, 0, 0, 2),
]


@pytest.fixture(scope="module")
def counted():
    """What the window of a case holds, and whether a policy that excludes a tenth of starved samples selects it."""
    cases = SIGNS_MISSING | NOBODY_KNOWS | ALSO_STARVED
    with open_store("chdb://memory") as client:
        migrate(client)
        rows = [
            {**STARVED, "remote_address": f"::ffff:198.18.{number}.0", **change}
            for number, change in enumerate(cases.values())
        ]
        client.insert("socket_samples", [list(row.values()) for row in rows], column_names=list(rows[0]))
        client.insert(
            "host_health",
            [
                ["ams1", host, START + timedelta(seconds=end), length * 10**6, *numbers]
                for host, end, length, *numbers in HEALTH
            ],
            column_names=HEALTH_COLUMNS,
        )
        assert windows.close(client, SLOW, MARK) == 1
        selected = {(m.pop, m.prefix) for m in qualifying(client, SLOW, MARK)}
        found = client.query(
            "SELECT toString(prefix), bbr_starved, bbr_samples FROM prefix_windows ORDER BY prefix"
        ).result_rows
    assert len(found) == len(cases)
    return {
        case: Counted(starved, samples, (row.get("pop", "ams1"), f"198.18.{number}.0/24") in selected)
        for number, ((case, row), (_, starved, samples)) in enumerate(zip(cases.items(), found, strict=True))
    }


@pytest.mark.parametrize("case", ALSO_STARVED)
def test_every_sign_is_there(counted, case):
    assert counted[case] == (1, 1, False)


@pytest.mark.parametrize("case", SIGNS_MISSING)
def test_a_sign_is_missing(counted, case):
    assert counted[case] == (0, 1, True)


@pytest.mark.parametrize("case", NOBODY_KNOWS)
def test_what_nobody_knows_is_left_out(counted, case):
    assert counted[case] == (0, 0, False)
