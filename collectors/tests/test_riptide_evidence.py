"""Which connections count, which only lower, and which say nothing of the path."""

from dataclasses import fields
from ipaddress import IPv6Address, ip_address, ip_network

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_edge.riptide.evidence import weigh
from tidegate_edge.riptide.observe import Connections
from tidegate_edge.riptide.state import Mean

INFINITE = 0x7FFFFFFF
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
POP = ip_network("192.0.2.1/32")

# A connection with nothing against it: grown past what it began with, and busy.
GOOD = {
    "cookie": 1,
    "cwnd": 60,
    "ssthresh": INFINITE,
    "mss": 1448,
    "ca_state": OPEN,
    "retransmitted": 0,
    "acked": 1_000_000,
    "app_limited": 0,
}


def connections(*each):
    rows = []
    for row in each:
        filled = {**GOOD, **row}
        address = ip_address(filled.pop("to", "192.0.2.1"))
        number = int(address) if isinstance(address, IPv6Address) else 0xFFFF << 32 | int(address)
        rows.append({"high": number >> 64, "low": number & (1 << 64) - 1, **filled})
    return Connections(
        *(np.array([row[column.name] for row in rows], np.uint64) for column in fields(Connections))
    )


NOTHING_SEEN = weigh(connections(), None, {}, {}).seen


def look(now, *, learned=None, given_out=None, before=()):
    """One look, with the one before it."""
    seen = weigh(connections(*before), NOTHING_SEEN, {}, given_out or {}).seen
    return weigh(connections(*now), seen, learned or {}, given_out or {})


@pytest.mark.parametrize(
    ("reason", "row", "before"),
    [
        ("counted", {}, ()),
        ("counted", {"ca_state": DISORDER}, ()),
        ("counted", {"retransmitted": 9}, [{"retransmitted": 9, "acked": 1}]),
        ("counted", {"ssthresh": 10, "cwnd": 10}, ()),
        ("counted", {"cwnd": 8}, ()),
        ("lossy", {"retransmitted": 1}, ()),
        ("lossy", {"retransmitted": 10}, [{"retransmitted": 9, "acked": 1}]),
        ("lossy", {"ca_state": CWR}, ()),
        ("lossy", {"ca_state": RECOVERY}, ()),
        ("lossy", {"ca_state": LOSS, "acked": 0}, ()),
        ("idle", {}, [{}]),
        ("idle", {"app_limited": 1}, [{}]),
        ("first_window", {"acked": 14_479}, ()),
        ("first_window", {"acked": 0, "app_limited": 1}, ()),
        ("app_limited", {"app_limited": 1}, ()),
        ("echo", {"cwnd": 10}, ()),
        ("echo", {"cwnd": 10, "app_limited": 0}, [{"cwnd": 10, "acked": 5}]),
    ],
)
def test_each_connection_has_one_reason(reason, row, before):
    found = look([row], before=before)
    assert found.counts[reason] == 1
    assert sum(found.counts.values()) == 1
    assert found.means == ({POP: Mean(row.get("cwnd", 60), 1)} if reason == "counted" else {})


def test_a_first_window_and_an_echo_are_those_of_what_was_given_when_it_began():
    at_40 = {POP: 40}
    whole_window = 40 * 1448
    assert look([{"acked": whole_window - 1}], given_out=at_40).counts["first_window"] == 1
    assert look([{"acked": whole_window}], given_out=at_40).counts["counted"] == 1
    assert look([{"cwnd": 40}], given_out=at_40).counts["echo"] == 1
    assert look([{"cwnd": 10}], given_out=at_40).counts["counted"] == 1
    # Begun under 40, looked at when new connections get 70.
    seen = weigh(connections({"cwnd": 40, "acked": 1}), NOTHING_SEEN, {}, at_40).seen
    later = weigh(connections({"cwnd": 40}, {"cwnd": 70, "cookie": 2}), seen, {}, {POP: 70})
    assert later.counts["echo"] == 2


def test_loss_never_raises():
    for learned in ({}, {POP: 10}, {POP: 60}):
        assert look([{"retransmitted": 1}], learned=learned).means == {}


def test_loss_lowers_to_what_it_left():
    learned = {POP: 80}
    reduced = {"retransmitted": 5, "ssthresh": 42}
    for row, left in (
        ({**reduced, "ca_state": RECOVERY, "cwnd": 60}, 42),
        (
            {**reduced, "ca_state": LOSS, "cwnd": 1},
            42,
        ),  # one segment after a timeout is no window of the path
        ({**reduced, "cwnd": 50}, 42),
        ({"retransmitted": 5, "ca_state": RECOVERY, "cwnd": 33}, 33),  # BBR keeps no threshold
        ({**reduced, "app_limited": 1, "acked": 10}, 42),  # in its first window: what was set is too much
    ):
        found = look([row], learned=learned)
        assert found.means == {POP: Mean(left, 1)}
        assert (found.counts["lowered"], found.counts["counted"]) == (1, 1)
    assert look([{**reduced, "ssthresh": 80}], learned=learned).means == {}


def test_a_loss_lowers_once():
    row = {"retransmitted": 5, "ssthresh": 42, "cwnd": 43, "app_limited": 1}
    again = look([{**row, "acked": 2_000_000}], learned={POP: 80}, before=[row])
    assert again.counts["lowered"] == 0
    assert again.counts["app_limited"] == 1


def test_at_the_first_look_nothing_is_known_of_what_happened_since():
    found = weigh(connections({}, {"retransmitted": 5, "ssthresh": 12, "cookie": 2}), None, {POP: 80}, {})
    assert found.means == {}
    assert found.counts["idle"] == 2


def test_windows_are_averaged_by_host_in_both_families():
    rows = [
        {"cookie": 1, "cwnd": 20},
        {"cookie": 2, "cwnd": 41},
        {"cookie": 3, "cwnd": 90, "app_limited": 1},
        {"cookie": 4, "cwnd": 30, "to": "2001:db8::1"},
        {"cookie": 5, "cwnd": 33, "to": "::ffff:192.0.2.1"},
        {"cookie": 6, "cwnd": 12, "to": "192.0.2.2"},
    ]
    assert look(rows).means == {
        POP: Mean(94, 3),
        ip_network("2001:db8::1/128"): Mean(30, 1),
        ip_network("192.0.2.2/32"): Mean(12, 1),
    }


def test_windows_are_averaged_by_the_longest_prefix_where_asked_for():
    toward = [ip_network("192.0.2.0/24"), ip_network("192.0.2.128/25"), ip_network("2001:db8::/32")]
    hosts = ["192.0.2.1", "192.0.2.2", "192.0.2.200", "2001:db8::1", "2001:db8:1::1"]
    rows = [{"cookie": number, "cwnd": 20 + number, "to": host} for number, host in enumerate(hosts, 1)]
    found = weigh(connections(*rows), NOTHING_SEEN, {}, {}, toward)
    assert found.means == {toward[0]: Mean(43, 2), toward[1]: Mean(23, 1), toward[2]: Mean(49, 2)}


small = st.integers(0, 3)
rows = st.fixed_dictionaries(
    {
        "to": st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]),
        "cwnd": st.sampled_from([1, 10, 11, 40, 500]),
        "ssthresh": st.sampled_from([2, 10, 40, INFINITE]),
        "mss": st.sampled_from([0, 536, 1448]),
        "ca_state": st.integers(0, 4),
        "retransmitted": small,
        "acked": st.sampled_from([0, 1, 14_479, 14_480, 1 << 40]),
        "app_limited": st.integers(0, 1),
    }
)


def judged(row, before, learned, given_out):
    """One connection by the words of `weigh`: what it counts with, or None."""
    start = before["initial"] if before else given_out
    if row["ca_state"] >= CWR or row["retransmitted"] > (before["retransmitted"] if before else 0):
        left = row["cwnd"] if row["ssthresh"] == INFINITE else row["ssthresh"]
        return left if left < learned else None
    if before and before["acked"] == row["acked"]:
        return None
    if row["acked"] < start * row["mss"] or row["app_limited"]:
        return None
    return None if row["cwnd"] == start and row["ssthresh"] == INFINITE else row["cwnd"]


@given(
    st.lists(st.dictionaries(st.integers(1, 12), rows), min_size=2, max_size=4),
    st.sampled_from([{}, {POP: 40}]),
    st.sampled_from([{}, {POP: 11}]),
)
@settings(max_examples=200, deadline=None)
def test_many_connections_are_judged_as_each_by_itself(looks, learned, given_out):
    seen, memory = NOTHING_SEEN, {}
    for now in looks:
        found = weigh(
            connections(*({**row, "cookie": cookie} for cookie, row in now.items())), seen, learned, given_out
        )
        wanted, later = {}, {}
        for cookie, row in now.items():
            host = ip_network(row["to"])
            before = memory.get(cookie)
            window = judged(row, before, learned.get(host, 0), given_out.get(host, 10))
            if window is not None:
                wanted.setdefault(host, []).append(window)
            initial = before["initial"] if before else given_out.get(host, 10)
            later[cookie] = {**row, "initial": initial}
        assert found.means == {host: Mean(sum(each), len(each)) for host, each in wanted.items()}
        assert sum(found.counts.values()) - found.counts["lowered"] == len(now)
        seen, memory = found.seen, later
