"""The simulated fleet is the same everywhere, and its slow prefixes are those that the example policy finds."""

import hashlib
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tidegate import windows
from tidegate.characters import IPV4_PREFIXES, IPV6_PREFIXES, Character, characters
from tidegate.cli import main
from tidegate.errors import Failure
from tidegate.schemas.rows import ROW_LENGTH, read_rows
from tidegate.select import measure, qualifying
from tidegate.simulate import simulate
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl.model import Bound, Clause, Condition, Fleet, Pop, Rank, Select

START = datetime(2026, 11, 20, tzinfo=UTC)
SEED = 1
FLEET = Fleet(
    pops=(
        Pop("ams1", ("europe",), (), ("192.0.2.0/26", "2001:db8:f010::/48")),
        Pop("fra2", ("europe",), (), ("192.0.2.64/26", "2001:db8:f020::/48")),
    ),
    origins=("198.19.255.0/24", "3fff:fff::/48"),
)
CLAUSE = Clause(1, "clause")
INVENTORY = Path(__file__).parents[2] / "inventory"


def bound(value):
    return Bound(value, CLAUSE)


# The select of the example policy.
SLOW_CLIENTS = Select(
    name="slow_clients",
    clause=CLAUSE,
    metric="delivery_rate",
    prefix_length_ipv4=24,
    prefix_length_ipv6=56,
    traffic="client",
    where=(
        Condition("bytes_acked", ">=", 100_000, CLAUSE),
        Condition("app_limited", "==", 0, CLAUSE),
    ),
    over_us=6 * 3600 * 1_000_000,
    step_us=300 * 1_000_000,
    rank=Rank("bottom", 200_000, None, CLAUSE),
    min_duty_cycle=bound(600_000),
    max_flap_rate=bound(100_000),
    min_windows=bound(54),
    min_samples=bound(20),
    exclude=(
        Condition("min_rtt", "<", 10_000, CLAUSE),
        Condition("retransmit_ratio", "<", 5_000, CLAUSE),
    ),
    hold_us=0,
    hold=None,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return simulate(FLEET, seed=SEED, start=START, hours=6, out=tmp_path_factory.mktemp("simulated"))


@pytest.fixture(scope="module")
def client(files):
    with open_store("chdb://memory") as store:
        migrate(store)
        for path in files:
            assert ingest_file(store, path).left_out == {}
        windows.close(store, SLOW_CLIENTS, START + timedelta(hours=6))
        yield store


def of(character):
    truth = characters(FLEET, seed=SEED)
    return {
        (pop, prefix) for pop, kinds in truth.items() for prefix, kind in kinds.items() if kind is character
    }


def measured(client, character):
    return measure(client, SLOW_CLIENTS, START + timedelta(hours=6), sorted(of(character)))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_example_policy_finds_the_slow_and_lossy_and_no_others(client):
    found = {(m.pop, m.prefix) for m in qualifying(client, SLOW_CLIENTS, START + timedelta(hours=6))}
    assert found == of(Character.SLOW_AND_LOSSY)
    for pop in FLEET.pops:
        assert 8 <= sum(name == pop.name for name, _ in found) <= 12


def often(measurement):
    """A member in 60% of the lookback."""
    return measurement.member_windows * 10 >= measurement.lookback_windows * 6


def flaps(measurement):
    """Membership changes in over 10% of the pairs."""
    return measurement.flips * 10 > measurement.adjacent_pairs


@pytest.mark.parametrize(
    ("character", "reason"),
    [
        (
            Character.SLOW_WITHOUT_LOSS,
            lambda m: m.metric("retransmit_ratio") < 5_000 and often(m),
        ),
        (Character.SLOW_AND_NEAR, lambda m: m.min_rtt < 10_000 and often(m)),
        (Character.FLAPPING, lambda m: flaps(m) and often(m)),
        (Character.SLOW_AT_TIMES, lambda m: m.member and not often(m) and not flaps(m)),
        (Character.APP_LIMITED, lambda m: not m.member and m.metric("retransmit_ratio") >= 5_000),
        (
            Character.SMALL_TRANSFERS,
            lambda m: not m.member and m.metric("retransmit_ratio") >= 5_000,
        ),
    ],
)
def test_each_character_is_left_out_for_its_own_reason(client, character, reason):
    found = measured(client, character)
    assert len(found) == len(of(character))
    assert [(m.timeline, m.min_rtt, m.metric("retransmit_ratio")) for m in found if not reason(m)] == []


def test_the_seldom_seen_are_never_observed(client):
    assert measured(client, Character.SELDOM_SEEN) == []


def test_what_is_ignored_would_have_changed_the_outcome(client):
    """Most samples of these prefixes say that they are slow; only `where` knows better."""
    for character in (Character.APP_LIMITED, Character.SMALL_TRANSFERS):
        for pop, prefix in of(character):
            address = ipaddress.ip_network(prefix).network_address
            mapped = f"::ffff:{address}" if address.version == 4 else str(address)
            (rates,) = client.query(
                "SELECT quantileExact(0.5)(delivery_rate), quantileExactIf(0.5)(delivery_rate,"
                " bytes_acked >= 100000 AND NOT delivery_rate_app_limited)"
                " FROM socket_samples WHERE pop = {pop:String} AND remote_address = {address:IPv6}",
                parameters={"pop": pop, "address": mapped},
            ).result_rows
            assert rates[0] * 2 < rates[1]


def test_every_traffic_class_is_there_and_labelled(client):
    rows = client.query(
        "SELECT toString(traffic_class), groupUniqArray(host) FROM socket_samples GROUP BY ALL"
    ).result_rows
    assert dict(rows) == {name: ["simulated"] for name in ("client", "pop_to_pop", "intra_pop", "origin")}


def test_the_bytes_are_the_same_on_every_machine(tmp_path):
    paths = simulate(FLEET, seed=SEED, start=START, hours=0.5, out=tmp_path)
    assert [(path.name, digest(path)[:16]) for path in paths] == [
        ("ams1.pb", "5f5409850ec845d0"),
        ("fra2.pb", "06cbd08b440357fe"),
    ]


def test_another_seed_gives_another_fleet(tmp_path):
    paths = [
        simulate(FLEET, seed=seed, start=START, hours=0.25, out=tmp_path / str(seed))[0] for seed in (1, 2)
    ]
    assert digest(paths[0]) != digest(paths[1])
    assert characters(FLEET, seed=1) != characters(FLEET, seed=2)


def test_rows_stand_in_the_order_of_time_within_the_hours_asked_for(tmp_path):
    path, _ = simulate(FLEET, seed=SEED, start=START, hours=7, out=tmp_path)  # more than is made at once
    times = read_rows(path.read_bytes())["observed_at_ns"].astype(np.int64)
    start_ns = int(START.timestamp()) * 10**9
    assert (np.diff(times) >= 0).all()
    assert start_ns <= times[0] < start_ns + 300 * 10**9
    assert start_ns + (7 * 3600 - 300) * 10**9 <= times[-1] < start_ns + 7 * 3600 * 10**9
    assert path.stat().st_size % ROW_LENGTH == 0


def test_clients_lie_outside_of_what_is_ours():
    crowded = Fleet(
        pops=tuple(Pop(f"p{i}", (), (), (f"198.18.{i}.0/24", f"2001:db8:0:{i}00::/56")) for i in range(12)),
        origins=("198.19.0.0/24",),
    )
    ours = [ipaddress.ip_network(text) for pop in crowded.pops for text in pop.own_prefixes]
    ours.append(ipaddress.ip_network("198.19.0.0/24"))
    for kinds in characters(crowded, seed=3).values():
        assert len(kinds) == IPV4_PREFIXES + IPV6_PREFIXES
        for prefix in map(ipaddress.ip_network, kinds):
            assert not any(own.version == prefix.version and own.overlaps(prefix) for own in ours)


@pytest.mark.parametrize("own", ["198.18.0.0/15", "2001:db8::/32", "::/0"])
def test_a_fleet_that_owns_everything_leaves_no_clients(own):
    with pytest.raises(Failure, match="leave none to simulate clients in"):
        characters(Fleet((Pop("ams1", (), (), (own,)),), ()), seed=1)


def test_what_cannot_be_simulated_is_refused(tmp_path):
    with pytest.raises(Failure, match="five-minute boundary"):
        simulate(FLEET, seed=1, start=START + timedelta(seconds=7), hours=1, out=tmp_path)
    with pytest.raises(Failure, match="no window"):
        simulate(FLEET, seed=1, start=START, hours=0.01, out=tmp_path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(Failure, match="cannot be written"):
        simulate(FLEET, seed=1, start=START, hours=1, out=tmp_path / "file")
    assert [path.name for path in Path(tmp_path).iterdir()] == ["file"]


def test_a_start_is_written_as_times_of_a_policy_too(tmp_path):
    made = set()
    for start in ("2026-11-20T00:00:00Z", "2026-11-20T00:00Z", "2026-11-20"):
        words = ("--inventory", INVENTORY, "--out", tmp_path / start, "--hours", 1, "--start", start)
        done = CliRunner().invoke(main, ["simulate", *map(str, words)])
        assert done.exit_code == 0, done.output
        made.add((tmp_path / start / "fra2.pb").read_bytes())
    assert len(made) == 1
