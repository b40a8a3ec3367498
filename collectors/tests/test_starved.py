"""BBR that is short of CPU: what shows it, and when new connections do without it and get it back."""

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate.starvation import BBR_STARVED
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_edge.health_counters import Counters, CpuTime, Pressure
from tidegate_edge.schemas.rows import ROW
from tidegate_edge.starved import PATIENCE, Look, Pressed, Signs, State, pressed, signs, step, without_bbr
from tidegate_edge.starved.fallback import LOOKS, MOST_PATIENCE
from tidegate_edge.steer.steering import Claim, Steering

# 100 Mbit/s x 20 ms is 250,000 bytes or 173 segments of 1448 bytes; 60 of them are in flight.
STARVED = {
    "congestion_control": b"bbr", "delivery_rate_app_limited": 0, "bbr_bw": 12_500_000, "bbr_min_rtt_us": 20_000,
    "bbr_cwnd_gain": 512, "notsent_bytes": 100_000, "ca_state": 0, "snd_mss": 1448, "unacked": 60,
    "snd_wnd": 3_000_000,
}  # fmt: skip
NEAR = {
    "congestion_control": (b"bbr", b"bbr", b"bbr2", b"cubic", b""),
    "delivery_rate_app_limited": (0, 0, 0, 1),
    "bbr_bw": (12_500_000, 12_500_000, 144_800, 144_799, 2**40, 0),
    "bbr_min_rtt_us": (20_000, 20_000, 20_000, 2**32 - 1, 0),
    "bbr_cwnd_gain": (512, 512, 512, 739, 256),
    "notsent_bytes": (100_000, 1, 0),
    "ca_state": (0, 1, 2, 3, 4),
    "snd_mss": (1448, 1448, 536, 0),
    "unacked": (60, 86, 87, 0),
    "snd_wnd": (3_000_000, 250_000, 249_999, 0),
}


def sockets(*changes):
    rows = np.zeros(len(changes), ROW)
    for row, change in zip(rows, changes, strict=True):
        for name, value in {**STARVED, **change}.items():
            row[name] = value
    return rows


# --- sockets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, Signs(1, 1)),
        ({"unacked": 86}, Signs(1, 1)),
        ({"unacked": 87}, Signs(1, 0)),
        ({"congestion_control": b"bbr3"}, Signs(1, 1)),
        ({"snd_wnd": 0}, Signs(1, 1)),
        ({"snd_wnd": 249_999}, Signs(0, 0)),
        ({"congestion_control": b"cubic"}, Signs(0, 0)),
        ({"delivery_rate_app_limited": 1}, Signs(0, 0)),
        ({"bbr_cwnd_gain": 739}, Signs(0, 0)),
        ({"notsent_bytes": 0}, Signs(0, 0)),
        ({"ca_state": 3}, Signs(0, 0)),
        ({"bbr_bw": 144_799, "unacked": 0}, Signs(0, 0)),
        ({"bbr_bw": 144_800, "unacked": 0}, Signs(1, 1)),
        ({"bbr_min_rtt_us": 2**32 - 1}, Signs(0, 0)),
    ],
)
def test_each_sign_counts(change, found):
    assert signs(sockets(change)) == found


def test_sockets_of_no_look_say_nothing():
    assert signs(sockets()) == Signs(0, 0)
    assert signs(sockets({}, {"unacked": 200})) == Signs(2, 1)


def test_the_agent_sees_what_the_metric_sees():
    """Each of 2,000 sockets, most of them a sign or two away from starved, by numpy and by SQL."""
    random = np.random.default_rng(5)
    changes = [
        {name: values[random.integers(len(values))] for name, values in NEAR.items() if random.random() < 0.4}
        for _ in range(2_000)
    ]
    mine = [signs(sockets(change)).starved for change in changes]
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    rows = [
        [
            at,
            "ams1",
            "edge1",
            number,
            *(v.decode() if isinstance(v, bytes) else v for v in {**STARVED, **c}.values()),
        ]
        for number, c in enumerate(changes)
    ]
    ns = int(at.timestamp()) * 10**9
    with open_store("chdb://memory") as client:
        migrate(client)
        client.insert(
            "socket_samples", rows, column_names=["observed_at", "pop", "host", "local_port", *STARVED]
        )
        client.insert(
            "host_health",
            [["ams1", "edge1", at, 10**6, 10**6, 10**6]],
            column_names=["pop", "host", "observed_at", "cpu_stalled_us", "observed_us", "interval_us"],
        )
        found = client.query(
            f"SELECT toUInt8({BBR_STARVED}) FROM socket_samples ORDER BY local_port",  # noqa: S608
            parameters={"from_ns": ns, "to_ns": ns + 10**9},
        ).result_rows
    assert [starved for (starved,) in found] == mine
    assert 100 < sum(mine) < 1_900


# --- the host ---------------------------------------------------------------------------------------------------


def counters(stalled=None, steal=0, total=0, delay=None):
    pressure = None if stalled is None else Pressure(stalled, (0, 0, 0))
    return Counters(pressure, CpuTime(2, total, 0, 0, 0, steal), delay)


@pytest.mark.parametrize(
    ("after", "found", "beyond"),
    [
        (counters(stalled=2_000_000), Pressed(200_000, None), True),
        (counters(stalled=1_999_990), Pressed(199_999, None), False),
        (counters(delay=4_000_000), Pressed(200_000, None), True),
        (counters(steal=1_000_000, total=20_000_000), Pressed(None, 50_000), True),
        (counters(steal=999_990, total=20_000_000), Pressed(None, 49_999), False),
        (counters(), Pressed(None, None), False),
    ],
)
def test_ten_seconds_of_a_host_with_two_cpus(after, found, beyond):
    before = counters(
        stalled=None if after.pressure is None else 0, delay=None if after.run_delay_us is None else 0
    )
    assert pressed(before, after, 10_000_000) == found
    assert found.beyond() is beyond


def test_counters_that_went_back_stood_still():
    assert pressed(
        counters(stalled=9, steal=5, total=0), counters(stalled=0, steal=0, total=9), 10
    ) == Pressed(0, 0)


# --- falling back and coming back -------------------------------------------------------------------------------

CALM = Look(Pressed(0, 0))
BETWEEN = Look(Pressed(150_000, 0))
BUSY = Look(Pressed(200_000, 0), Signs(10, 1))
SHORT = Look(Pressed(200_000, 0), Signs(10, 2))
UNKNOWN = Look(Pressed(None, None))
STATES = st.lists(st.sampled_from([CALM, CALM, CALM, BETWEEN, BUSY, SHORT, SHORT, UNKNOWN]), max_size=400)
# Long runs of one look: those change something.
RUNS = st.lists(
    st.tuples(st.sampled_from([CALM, BETWEEN, BUSY, SHORT, UNKNOWN]), st.integers(1, 40)), max_size=20
).map(lambda runs: [look for look, times in runs for _ in range(times)])


def follow(looks):
    states = [State()]
    for look in looks:
        states.append(step(states[-1], look))
    return states


@settings(max_examples=300, deadline=None)
@given(st.one_of(STATES, RUNS))
def test_whatever_is_seen_it_changes_only_for_what_lasted(looks):
    states = follow(looks)
    fell = 0
    for number, (before, after) in enumerate(pairwise(states)):
        upto = looks[: number + 1]
        if after.fallen_back and not before.fallen_back:
            fell += 1
            assert all(look.starves for look in upto[-LOOKS:])
        if before.fallen_back and not after.fallen_back:
            assert all(look.calm for look in upto[-before.patience :])
            assert before.since + 1 >= before.patience >= PATIENCE
        assert after.times == fell
        assert after.patience <= MOST_PATIENCE


@settings(deadline=None)
@given(RUNS)
def test_it_always_comes_back_in_the_end(looks):
    states = follow([*looks, *[CALM] * MOST_PATIENCE])
    assert not states[-1].fallen_back


def test_it_falls_back_after_three_looks_and_comes_back_after_a_minute_of_calm():
    states = follow(
        [*[SHORT] * LOOKS, *[BETWEEN] * 20, *[CALM] * (PATIENCE - 1), BETWEEN, *[UNKNOWN] * PATIENCE]
    )
    assert [state.fallen_back for state in states] == [False] * LOOKS + [True] * (20 + PATIENCE * 2) + [False]


def test_a_host_that_falls_back_again_at_once_waits_twice_as_long_each_time():
    state, waited = State(), []
    for _ in range(8):
        while not state.fallen_back:
            state = step(state, SHORT)
        looks = 0
        while state.fallen_back:
            state, looks = step(state, CALM), looks + 1
        waited.append(looks)
    assert waited == [min(PATIENCE << n, MOST_PATIENCE) for n in range(8)]
    for _ in range(6 * MOST_PATIENCE):
        state = step(state, CALM)
    for _ in range(LOOKS):
        state = step(state, SHORT)
    assert state.patience == PATIENCE


# --- what yields ------------------------------------------------------------------------------------------------


def test_only_bbr_yields():
    def generation(default, *algorithms):
        claims = (
            Claim(prefix, each, 100_000, True, 20, None)
            for prefix, each in zip("abcd", algorithms, strict=True)
        )
        return Steering("0" * 16, default, tuple(claims), None)

    stated = generation("bbr", "bbr", "bbr3", "cubic", None)
    assert without_bbr(stated, "reno") == generation("reno", "reno", "reno", "cubic", None)
    assert without_bbr(generation(None, *"abcd"), "cubic") == generation(None, *"abcd")
