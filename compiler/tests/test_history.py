"""Histories: selection from one and from the windows alone agree; where one is not whole, the windows are read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate import history
from tidegate.metrics import window_columns
from tidegate.select import measure, observed_prefixes, qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close, lookback, view_of
from tidegate_dsl.model import Bound, Clause, Rank, Select

START = datetime(2026, 11, 20, tzinfo=UTC)
STEP_S = 300
WINDOWS = 6
CLAUSE = Clause(1, "clause")
PREFIXES = [f"2001:db8:{n}::/56" for n in range(1, 5)]
SELECT = Select(
    "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), STEP_S * WINDOWS * 10**6, STEP_S * 10**6,
    Rank("bottom", 500_000, None, CLAUSE), Bound(300_000, CLAUSE), None, None, None, (), 0, None,
)  # fmt: skip
VIEW = view_of(SELECT)
TABLES = ("socket_samples", "prefix_windows", "closed_windows", "prefix_histories", "whole_histories")


@pytest.fixture(scope="module")
def store():
    with open_store("chdb://memory") as client:
        client.set_client_setting("max_threads", 1)
        migrate(client)
        yield client


@pytest.fixture
def client(store):
    emptied(store)
    return store


def emptied(client):
    for table in TABLES:
        client.command(f"TRUNCATE TABLE {table}")


def sampled(client, rates):
    """One sample a prefix and window; `rates[window][prefix]` is None where there is none."""
    rows = [
        [START + timedelta(seconds=w * STEP_S), "ams1", "client", PREFIXES[p].removesuffix("/56"), 56, rate]
        for w, window in enumerate(rates)
        for p, rate in enumerate(window)
        if rate is not None
    ]
    names = ["observed_at", "pop", "traffic_class", "remote_address", "remote_prefix_length", "delivery_rate"]
    if rows:
        client.insert("socket_samples", rows, column_names=names)


def mark(windows):
    return START + timedelta(seconds=windows * STEP_S)


def keep(client, select, at):
    history.keep(client, VIEW, lookback(select, at)[-1], select.step_us, window_columns(select))


def is_kept(client, at):
    return history.is_kept(client, VIEW, at - timedelta(seconds=STEP_S))


def found(client, select, at):
    everyone = [("ams1", prefix) for prefix in PREFIXES]
    return (
        qualifying(client, select, at),
        measure(client, select, at, everyone),
        observed_prefixes(client, select, at),
    )


def from_windows(client, select, at):
    for table in ("prefix_histories", "whole_histories"):
        client.command(f"TRUNCATE TABLE {table}")
    return found(client, select, at)


RATES = [
    [1, 2, 3, 4],
    [1, None, 3, 4],
    [4, 3, 2, 1],
    [1, 2, None, 4],
    [1, 2, 3, 4],
    [2, 1, 3, 4],
    [1, 1, 1, 1],
]


@settings(max_examples=10, deadline=None)
@given(
    rates=st.lists(
        st.lists(st.one_of(st.none(), st.integers(1, 4)), min_size=4, max_size=4), min_size=2, max_size=12
    ),
    spans=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    windows=st.integers(1, 8),
)
def test_a_history_carried_by_any_number_of_windows_says_what_they_say(store, rates, spans, windows):
    emptied(store)
    sampled(store, rates)
    select = replace(SELECT, over_us=windows * STEP_S * 10**6)
    ends = [len(rates)]
    for span in spans:
        ends.append(ends[-1] - span)
    for end in (e for e in reversed(ends) if e > 0):
        close(store, select, mark(end))
        keep(store, select, mark(end))
        last = end
    carried = found(store, select, mark(last))
    assert carried == from_windows(store, select, mark(last))


def test_masks_hold_128_windows_and_forget_what_is_older(client):
    rates = [[1, 2]] + [[None, 2]] * 128
    sampled(client, rates)
    longest = replace(SELECT, over_us=128 * STEP_S * 10**6, min_duty_cycle=None)
    for end in (1, 128, 129):
        close(client, longest, mark(end))
        keep(client, longest, mark(end))
        assert is_kept(client, mark(end))
        carried = found(client, longest, mark(end))
        assert carried[2] == {"ams1": 1 if end == 129 else 2}
    assert carried == from_windows(client, longest, mark(129))


def test_only_the_history_and_the_one_that_it_was_made_from_are_kept(client):
    sampled(client, RATES)
    for end in range(3, len(RATES) + 1):
        close(client, SELECT, mark(end))
        keep(client, SELECT, mark(end))
    starts = client.query("SELECT DISTINCT window_start FROM prefix_histories ORDER BY 1").result_rows
    assert len(starts) == 2
    assert all(b[0] - a[0] == timedelta(seconds=STEP_S) for a, b in pairwise(starts))
    assert not is_kept(client, mark(3))
    assert found(client, SELECT, mark(3)) == from_windows(client, SELECT, mark(3))


def test_a_history_is_read_where_it_is_kept_and_not_where_it_lost_rows(client):
    sampled(client, RATES)
    at = mark(len(RATES))
    close(client, SELECT, at)
    keep(client, SELECT, at)
    whole = found(client, SELECT, at)
    newest = {"newest": at - timedelta(seconds=STEP_S)}
    client.command(
        "DELETE FROM prefix_histories WHERE prefix = '2001:db8:1::' AND window_start = {newest:DateTime('UTC')}",
        parameters=newest,
    )
    assert not is_kept(client, at)
    assert found(client, SELECT, at) == whole
    keep(client, SELECT, at)
    assert is_kept(client, at)
    assert found(client, SELECT, at) == whole


def test_windows_are_read_of_a_prefix_that_was_seldom_a_member_and_where_they_say_otherwise_they_count(
    client,
):
    sampled(client, [[1, 2, 3, 4]] * WINDOWS)
    at = mark(WINDOWS)
    close(client, SELECT, at)
    keep(client, SELECT, at)
    stored = client.query("SELECT toString(prefix), delivery_rate FROM prefix_histories ORDER BY prefix")
    assert stored.result_rows == [
        (prefix.removesuffix("/56"), [8 * rate] * WINDOWS if rate < 3 else [])
        for rate, prefix in enumerate(PREFIXES, 1)
    ]
    everyone = [("ams1", prefix) for prefix in PREFIXES]
    assert [each.delivery_rate for each in measure(client, SELECT, at, everyone)] == [8, 16, 24, 32]
    client.command(
        "DELETE FROM prefix_windows WHERE prefix = '2001:db8:4::' AND window_start < '2026-11-20 00:15:00'"
    )
    assert is_kept(client, at)
    measured = measure(client, SELECT, at, everyone)
    assert measured[3].timeline.startswith("...")
    assert measured == from_windows(client, SELECT, at)[1]


def test_who_becomes_a_member_often_gets_its_values_with_the_next_history(client):
    sampled(client, [[1, 2, 3, 4]] * 6 + [[4, 3, 2, 1]] * 4)
    held = {}
    for end in range(WINDOWS, 11):
        close(client, SELECT, mark(end))
        keep(client, SELECT, mark(end))
        newest = {"newest": mark(end) - timedelta(seconds=STEP_S)}
        held[end] = client.query(
            "SELECT length(delivery_rate) FROM prefix_histories"
            " WHERE prefix = '2001:db8:4::' AND window_start = {newest:DateTime('UTC')}",
            parameters=newest,
        ).result_rows[0][0]
        assert found(client, SELECT, mark(end))[1][3].delivery_rate == (32 if end < 9 else 8)
    assert held == {6: 0, 7: 0, 8: 0, 9: 9, 10: 10}  # 2 of its 8 windows are a quarter


def test_windows_closed_later_than_a_history_that_holds_them_are_in_the_next(client):
    """A select with a longer lookback shares the windows, and closes older ones."""
    sampled(client, RATES)
    at = mark(len(RATES))
    shorter = replace(SELECT, over_us=2 * STEP_S * 10**6)
    close(client, shorter, at)
    keep(client, shorter, at)
    assert close(client, SELECT, at) == WINDOWS - 2
    assert not is_kept(client, at)
    keep(client, SELECT, at)
    assert is_kept(client, at)
    for select in (SELECT, shorter):
        expected = found(client, select, at)
        assert expected[0]
        history.drop_from(client, VIEW, START)
        assert found(client, select, at) == expected
        keep(client, select, at)


def test_a_window_that_is_closed_again_leaves_no_history_of_what_it_was(client):
    sampled(client, RATES)
    at = mark(len(RATES))
    close(client, SELECT, at)
    keep(client, SELECT, at)
    sampled(client, [[None, None, None, 1]] * len(RATES))
    client.command("DELETE FROM closed_windows WHERE window_start = '2026-11-20 00:25:00'")
    assert close(client, SELECT, at) == 1
    assert not is_kept(client, at)
    keep(client, SELECT, at)
    assert found(client, SELECT, at) == from_windows(client, SELECT, at)
