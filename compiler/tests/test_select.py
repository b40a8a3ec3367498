"""Bounds that are met exactly, and windows that are closed halfway; test_reference_selection.py has all else."""

import ipaddress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tidegate import windows
from tidegate.select import observed_prefixes, qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl.model import Bound, Clause, Rank, Select

START = datetime(2026, 11, 20, tzinfo=UTC)
STEP_S = 300
WINDOWS = 8
MARK = START + timedelta(seconds=STEP_S * WINDOWS)
CLAUSE = Clause(1, "clause")
COLUMNS = ["pop", "at_s", "prefix", "rate", "min_rtt", "retrans", "segments", "acked", "app_limited"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with open_store(f"chdb://{tmp_path_factory.mktemp('select')}") as store:
        migrate(store)
        yield store


PREFIXES = ["198.51.100.0/24", "203.0.113.0/24"]
BARE = Select(
    "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), STEP_S * WINDOWS * 10**6, STEP_S * 10**6,
    Rank("bottom", 500_000, None, CLAUSE), None, None, None, None, (), 0, None,
)  # fmt: skip


def load(client, samples):
    for table in ("socket_samples", "prefix_windows", "closed_windows"):
        client.command(f"TRUNCATE TABLE {table}")
    insert(client, samples)


def insert(client, samples):
    rows = []
    for s in samples:
        network = ipaddress.ip_network(s["prefix"])
        mapped = network.version == 4
        address = f"::ffff:{network.network_address}" if mapped else str(network.network_address)
        moment = START + timedelta(seconds=s["at_s"])
        rows.append(
            [
                moment,
                s["pop"],
                "client",
                address,
                network.prefixlen + 96 * mapped,
                s["rate"],
                s["min_rtt"],
                s["retrans"],
                s["segments"],
                s["acked"],
                s["app_limited"],
            ]
        )
    client.insert(
        "socket_samples",
        rows,
        column_names=[
            "observed_at",
            "pop",
            "traffic_class",
            "remote_address",
            "remote_prefix_length",
            "delivery_rate",
            "min_rtt_us",
            "total_retrans",
            "data_segs_out",
            "bytes_acked",
            "delivery_rate_app_limited",
        ],
    )


@pytest.mark.parametrize(
    ("change", "selected"),
    [
        ({"min_duty_cycle": 500_000}, True),
        ({"min_duty_cycle": 500_001}, False),
        ({"max_flap_rate": 250_000}, True),
        ({"max_flap_rate": 249_999}, False),
        ({"min_windows": 5}, True),
        ({"min_windows": 6}, False),
    ],
)
def test_bounds_are_inclusive(client, change, selected):
    """Slow in 4 of 8 windows, observed in 5: a duty cycle of 1/2, one flip in four pairs."""
    slow, fast = PREFIXES[:2]
    samples = [
        dict(zip(COLUMNS, ("ams1", index * STEP_S, prefix, rate, 20_000, 1, 10, 0, 0), strict=True))
        for index in range(5)
        for prefix, rate in ((slow, 1 if index < 4 else 3), (fast, 2))
    ]
    load(client, samples)
    bounds = {name: Bound(value, CLAUSE) for name, value in change.items()}
    select = replace(BARE, **bounds)
    windows.close(client, select, MARK)
    assert (("ams1", slow) in {(m.pop, m.prefix) for m in qualifying(client, select, MARK)}) is selected
    assert observed_prefixes(client, select, MARK) == {"ams1": 2}


def test_prefixes_read_as_ipaddress_writes_them(client):
    prefixes = [
        "198.51.100.7/32",
        "203.0.113.0/32",
        "2001:db8::/128",
        "2001:db8::c633:6407/128",
        "::198.51.100.7/128",
        "::ffff:0:c633:6407/128",
    ]
    samples = [
        dict(zip(COLUMNS, ("ams1", index * STEP_S, prefix, 1, 20_000, 1, 10, 0, 0), strict=True))
        for index in range(WINDOWS)
        for prefix in prefixes
    ]
    load(client, samples)
    select = replace(BARE, prefix_length_ipv4=32, prefix_length_ipv6=128)
    windows.close(client, select, MARK)
    found = {m.prefix for m in qualifying(client, select, MARK)}
    assert found == {str(ipaddress.ip_network(prefix)) for prefix in prefixes}


def test_a_window_that_was_closed_halfway_is_closed_again_and_late_samples_reopen_none(client):
    samples = [
        dict(zip(COLUMNS, ("ams1", index * STEP_S, prefix, rate, 20_000, 1, 10, 0, 0), strict=True))
        for index in range(WINDOWS)
        for prefix, rate in ((PREFIXES[0], 1), (PREFIXES[1], 2))
    ]
    load(client, samples)
    assert windows.close(client, BARE, MARK) == WINDOWS
    whole = client.query("SELECT * EXCEPT (closed_at) FROM prefix_windows ORDER BY ALL").result_rows
    client.command("TRUNCATE TABLE closed_windows")  # as a crash before the registration leaves it
    assert windows.close(client, BARE, MARK) == WINDOWS
    assert client.query("SELECT * EXCEPT (closed_at) FROM prefix_windows ORDER BY ALL").result_rows == whole

    insert(client, [samples[0] | {"rate": 9} for _ in range(5)])
    assert windows.close(client, BARE, MARK) == 0
    assert client.query("SELECT * EXCEPT (closed_at) FROM prefix_windows ORDER BY ALL").result_rows == whole
