"""Selection's SQL against a reference written from dsl/SPEC.md alone, on random policies and telemetry."""

import ipaddress
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidegate import windows
from tidegate.select import measure, observed_prefixes, qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl.model import Bound, Clause, Condition, Rank, Select

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


# --- telemetry and policies, drawn small so that ties, gaps and one-member POPs are common -----------------

PREFIXES = ["198.51.100.0/24", "203.0.113.0/24", "192.0.2.0/24", "2001:db8:0:100::/56", "2001:db8:0:200::/56"]
sample = st.tuples(
    st.sampled_from(["ams1", "fra2"]),
    st.integers(-STEP_S, STEP_S * WINDOWS + STEP_S - 1),  # some before the lookback, some late
    st.sampled_from(PREFIXES),
    st.sampled_from([0, 1, 1, 2, 3, 125_000_000_000_001]),  # nothing measured, ties, damage
    st.sampled_from([0, 5_000, 20_000, 4294967295]),
    st.integers(0, 3),
    st.integers(0, 100),
    st.sampled_from([0, 100_000, 200_000]),
    st.integers(0, 1),
)
# Shares of 8 windows and of 1 to 7 pairs, so that bounds are met exactly as often as passed.
shares = [1_000_000 * part // whole for whole in (8, 7, 5, 3) for part in range(whole + 1)]
bounds = st.none() | st.sampled_from(shares).map(lambda value: Bound(value, CLAUSE))
comparisons = st.sampled_from(["<", "<=", ">", ">="])
conditions = st.one_of(
    st.builds(Condition, st.just("min_rtt"), comparisons, st.sampled_from([5_000, 20_000]), st.just(CLAUSE)),
    st.builds(
        Condition,
        st.just("retransmit_ratio"),
        comparisons,
        st.sampled_from([0, 5_000, 20_000]),
        st.just(CLAUSE),
    ),
    st.builds(Condition, st.just("delivery_rate"), comparisons, st.sampled_from([8, 16]), st.just(CLAUSE)),
)
filters = st.one_of(
    conditions,
    st.builds(Condition, st.just("bytes_acked"), comparisons, st.just(100_000), st.just(CLAUSE)),
    st.builds(Condition, st.just("app_limited"), st.just("=="), st.integers(0, 1), st.just(CLAUSE)),
)
selects = st.builds(
    Select,
    name=st.just("slow"),
    clause=st.just(CLAUSE),
    metric=st.sampled_from(["delivery_rate", "min_rtt", "retransmit_ratio"]),
    prefix_length_ipv4=st.sampled_from([16, 24]),
    prefix_length_ipv6=st.sampled_from([48, 56]),
    traffic=st.just("client"),
    where=st.lists(filters, max_size=2).map(tuple),
    over_us=st.just(STEP_S * WINDOWS * 1_000_000),
    step_us=st.just(STEP_S * 1_000_000),
    rank=st.integers(1, 1_000_000).map(lambda ppm: Rank("bottom", ppm, None, CLAUSE)),
    min_duty_cycle=bounds,
    max_flap_rate=bounds,
    min_windows=st.none() | st.integers(1, WINDOWS).map(lambda n: Bound(n, CLAUSE)),
    min_samples=st.none() | st.integers(1, 3).map(lambda n: Bound(n, CLAUSE)),
    exclude=st.lists(conditions, max_size=2).map(tuple),
    hold_us=st.just(0),
    hold=st.none(),
)

BARE = Select(
    "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), STEP_S * WINDOWS * 10**6, STEP_S * 10**6,
    Rank("bottom", 500_000, None, CLAUSE), None, None, None, None, (), 0, None,
)  # fmt: skip


# --- the reference --------------------------------------------------------------------------------------

COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}


def median(values):
    return sorted(values)[ceil(len(values) / 2) - 1] if values else None


def of_sample(metric, s):
    """A sample's value in base units, None where the kernel measured none."""
    return {
        "delivery_rate": s["rate"] * 8 if 0 < s["rate"] <= 125_000_000_000_000 else None,
        "min_rtt": s["min_rtt"] if 0 < s["min_rtt"] < 4294967295 else None,
        "retransmit_ratio": Fraction(s["retrans"], s["segments"]) * 1_000_000 if s["segments"] else None,
        "bytes_acked": s["acked"],
        "app_limited": s["app_limited"],
    }[metric]


def of_many(metric, samples):
    if metric == "retransmit_ratio":
        sent = sum(s["segments"] for s in samples)
        retrans = sum(s["retrans"] for s in samples if s["segments"])
        return Fraction(retrans, sent) * 1_000_000 if sent else None
    known = [v for s in samples if (v := of_sample(metric, s)) is not None]
    return (min(known) if metric == "min_rtt" else median(known)) if known else None


def reference(select, samples):
    """{(pop, prefix)} that the select selects, from the definitions alone."""
    grouped = defaultdict(list)
    for s in samples:
        index = s["at_s"] // STEP_S
        passes = (
            0 <= index < WINDOWS
            and of_sample(select.metric, s) is not None
            and all(
                (v := of_sample(c.metric, s)) is not None and COMPARE[c.comparison](v, c.value)
                for c in select.where
            )
        )
        if passes:
            network = ipaddress.ip_network(s["prefix"])
            length = select.prefix_length_ipv4 if network.version == 4 else select.prefix_length_ipv6
            prefix = str(network if network.prefixlen <= length else network.supernet(new_prefix=length))
            grouped[s["pop"], index, prefix].append(s)
    need = select.min_samples.value if select.min_samples else 1
    observed = {key: found for key, found in grouped.items() if len(found) >= need}
    by_window = defaultdict(list)
    values = {}
    for (pop, index, prefix), found in observed.items():
        value = of_many(select.metric, found)
        values[pop, index, prefix] = value // 1 if select.metric == "retransmit_ratio" else value
        by_window[pop, index].append(values[pop, index, prefix])
    selected = set()
    for pop, prefix in {(pop, prefix) for pop, _, prefix in observed}:
        seen = [i for i in range(WINDOWS) if (pop, i, prefix) in observed]
        member = []
        for i in seen:
            ranked = sorted(by_window[pop, i])
            k = ceil(Fraction(select.rank.share_ppm, 1_000_000) * len(ranked))
            member.append(values[pop, i, prefix] <= ranked[k - 1])
        state = dict(zip(seen, member, strict=True))
        pairs = [(state[i], state[i + 1]) for i in seen if i + 1 in state]
        flips = sum(a != b for a, b in pairs)
        passes = (
            any(member)
            and (select.min_windows is None or len(seen) >= select.min_windows.value)
            and (
                select.min_duty_cycle is None
                or Fraction(sum(member), WINDOWS) * 1_000_000 >= select.min_duty_cycle.value
            )
            and (
                select.max_flap_rate is None
                or (Fraction(flips, len(pairs)) if pairs else 0) * 1_000_000 <= select.max_flap_rate.value
            )
        )
        for c in select.exclude:
            per_window = [observed[pop, i, prefix] for i in seen]
            if c.metric == "retransmit_ratio":
                found = of_many(c.metric, [s for w in per_window for s in w])
            elif c.metric == "min_rtt":
                found = min((v for w in per_window if (v := of_many(c.metric, w)) is not None), default=None)
            else:
                found = median([v for w in per_window if (v := of_many(c.metric, w)) is not None])
            passes = passes and found is not None and not COMPARE[c.comparison](found, c.value)
        if passes:
            selected.add((pop, prefix))
    return selected


# --- the claim ------------------------------------------------------------------------------------------


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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(select=selects, samples=st.lists(sample, min_size=1, max_size=60))
def test_sql_selects_what_the_specification_says(client, select, samples):
    samples = [dict(zip(COLUMNS, s, strict=True)) for s in samples]
    load(client, samples)
    windows.close(client, select, MARK)
    selected = qualifying(client, select, MARK)
    assert {(m.pop, m.prefix) for m in selected} == reference(select, samples)
    again = measure(client, select, MARK, [(m.pop, m.prefix) for m in selected])
    assert again == selected
    assert windows.close(client, select, MARK) == 0


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


def test_a_window_that_was_closed_halfway_is_closed_again_and_late_samples_reopen_none(client):
    samples = [
        dict(zip(COLUMNS, ("ams1", index * STEP_S, prefix, rate, 20_000, 1, 10, 0, 0), strict=True))
        for index in range(WINDOWS)
        for prefix, rate in ((PREFIXES[0], 1), (PREFIXES[1], 2))
    ]
    load(client, samples)
    assert windows.close(client, BARE, MARK) == WINDOWS
    whole = client.query("SELECT * FROM prefix_windows ORDER BY ALL").result_rows
    client.command("TRUNCATE TABLE closed_windows")  # as a crash before the registration leaves it
    assert windows.close(client, BARE, MARK) == WINDOWS
    assert client.query("SELECT * FROM prefix_windows ORDER BY ALL").result_rows == whole

    insert(client, [samples[0] | {"rate": 9} for _ in range(5)])
    assert windows.close(client, BARE, MARK) == 0
    assert client.query("SELECT * FROM prefix_windows ORDER BY ALL").result_rows == whole
