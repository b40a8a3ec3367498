"""Each kind of metric, each form of a rank and the bounds of incumbents, in SQL against values worked out by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tidegate.metrics import METRICS
from tidegate.select import excluded_by, measure, qualifying, stays, window_values
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.windows import close, view_of
from tidegate_dsl import vocabulary
from tidegate_dsl.model import Bound, Clause, Condition, Rank, Select

START = datetime(2026, 11, 20, tzinfo=UTC)
STEP_S = 300
WINDOWS = 4
MARK = START + timedelta(seconds=STEP_S * WINDOWS)
CLAUSE = Clause(1, "clause")
PREFIXES = [f"198.51.{third}.0/24" for third in range(100, 110)]
BOTTOM = Rank("bottom", 500_000, None, CLAUSE)
BARE = Select(
    "slow", CLAUSE, "delivery_rate", 24, 56, "client", (), STEP_S * WINDOWS * 10**6, STEP_S * 10**6,
    BOTTOM, None, None, None, None, (), 0, None,
)  # fmt: skip


@pytest.fixture(scope="module")
def store():
    with open_store("chdb://memory") as client:
        migrate(client)
        yield client


@pytest.fixture
def client(store):
    for table in ("socket_samples", "transfers", "host_health", "prefix_windows", "closed_windows"):
        store.command(f"TRUNCATE TABLE {table}")
    return store


def sampled(client, rows):
    """One sample each of {window, prefix, column: value}; what is not given is as the kernel did not report it."""
    for given in rows:
        row = {"window": 0, "prefix": PREFIXES[0], "delivery_rate": 1_000, **given}
        address = row.pop("prefix").removesuffix("/24")
        moment = START + timedelta(seconds=row.pop("window") * STEP_S)
        columns = {
            "observed_at": moment, "pop": "ams1", "traffic_class": "client",
            "remote_address": f"::ffff:{address}", "remote_prefix_length": 120,
        }  # fmt: skip
        columns |= row
        client.insert("socket_samples", [list(columns.values())], column_names=list(columns))


def condition(metric, comparison, value, leave=None):
    return Condition(metric, comparison, value, CLAUSE, leave)


def measured(client, select, prefix=PREFIXES[0], extra=frozenset()):
    close(client, select, MARK, extra)
    (found,) = measure(client, select, MARK, [("ams1", prefix)], extra)
    return found


def members(client, select):
    close(client, select, MARK)
    return {m.prefix for m in qualifying(client, select, MARK)}


def excluding(*conditions):
    return replace(BARE, exclude=conditions)


def test_every_metric_of_the_language_has_its_sql():
    assert METRICS.keys() == vocabulary.METRICS.keys()
    for name, metric in METRICS.items():
        assert bool(metric.columns) is bool(set(vocabulary.METRICS[name].places) - {"where"}), name


# --- rank -----------------------------------------------------------------------------------------------

RATES = dict(
    zip(PREFIXES, (10, 20, 20, 30, 40), strict=False)
)  # bytes per second: 80, 160, 160, 240, 320 bps


@pytest.mark.parametrize(
    ("rank", "expected", "threshold"),
    [
        (Rank("bottom", 200_000, None, CLAUSE), {80}, 80),
        (Rank("bottom", 400_000, None, CLAUSE), {80, 160}, 160),  # both that tie
        (Rank("bottom", 200_001, None, CLAUSE), {80, 160}, 160),  # a share is rounded up
        (Rank("top", 200_000, None, CLAUSE), {320}, 320),
        (Rank("top", 600_000, None, CLAUSE), {320, 240, 160}, 160),
        (Rank("bottom", None, condition("delivery_rate", "<", 160), CLAUSE), {80}, 160),
        (Rank("bottom", None, condition("delivery_rate", "<=", 160), CLAUSE), {80, 160}, 160),
        (Rank("bottom", None, condition("delivery_rate", ">", 160), CLAUSE), {240, 320}, 160),
        (Rank("bottom", None, condition("delivery_rate", ">", 320), CLAUSE), set(), 320),
        (Rank("bottom", 600_000, condition("delivery_rate", "<", 160), CLAUSE), {80}, 160),
        (Rank("top", 400_000, condition("delivery_rate", ">=", 320), CLAUSE), {320}, 240),
    ],
)
def test_members_by_share_by_an_absolute_value_and_by_both(client, rank, expected, threshold):
    sampled(client, [{"prefix": prefix, "delivery_rate": rate} for prefix, rate in RATES.items()])
    select = replace(BARE, rank=rank)
    assert members(client, select) == {prefix for prefix, rate in RATES.items() if rate * 8 in expected}
    ((_, samples, value, shown, member),) = window_values(client, select, MARK, "ams1", PREFIXES[0])
    assert (samples, value, shown, member) == (1, 80, threshold, 80 in expected)


def test_an_absolute_value_of_a_ratio_is_compared_before_it_is_rounded(client):
    """3 of 299,999 are 10.00003 ppm: above 10, though 10 where it is shown."""
    sampled(client, [{"total_retrans": 3, "data_segs_out": 299_999}])
    above, at_most = (
        replace(BARE, metric="retransmit_ratio", rank=Rank("bottom", None, test, CLAUSE))
        for test in (condition("retransmit_ratio", ">", 10), condition("retransmit_ratio", "<=", 10))
    )
    assert members(client, above) == {PREFIXES[0]}
    assert members(client, at_most) == set()
    assert measured(client, above).metric("retransmit_ratio") == 10


# --- metrics --------------------------------------------------------------------------------------------

# By metric: the column, by window its samples' values, and the value over the lookback.
MEDIANS = [
    ("delivery_rate", "delivery_rate", [[1, 2, 3, 4], [9]], 16),
    ("pacing_rate", "pacing_rate", [[1, 2, 3, 4], [2**64 - 1, 7]], 16),  # ~0: not paced
    ("rtt", "rtt_us", [[0, 5, 6], [0], [9]], 5),
    ("rttvar", "rttvar_us", [[0, 5, 6], [0], [9]], 5),
    ("cwnd", "snd_cwnd", [[10, 20, 30], [40], [50]], 40),
    ("inflight", "unacked", [[0, 0, 4], [0], [8]], 4),
    ("min_rtt", "min_rtt_us", [[9, 7], [0, 2**32 - 1], [8]], 7),
]


@pytest.mark.parametrize(("metric", "column", "values", "expected"), MEDIANS)
def test_values_of_samples(client, metric, column, values, expected):
    sampled(client, [{"window": i, column: v} for i, each in enumerate(values) for v in each])
    assert measured(client, excluding(condition(metric, "<", 1))).metric(metric) == expected


RATIOS = [
    ("retransmit_ratio", "total_retrans", "data_segs_out"),
    ("ce_ratio", "delivered_ce", "delivered"),
    ("rwnd_limited", "rwnd_limited_us", "busy_time_us"),
    ("sndbuf_limited", "sndbuf_limited_us", "busy_time_us"),
]


@pytest.mark.parametrize(("metric", "upper", "lower"), RATIOS)
def test_a_ratio_is_one_sum_over_another_and_compared_in_whole_numbers(client, metric, upper, lower):
    huge = 2**30  # times a million it is beyond 32 bits, and three of them are beyond them in the sum
    sampled(client, [{upper: huge, lower: 3 * huge}, {"window": 2, upper: 7, lower: 0}])
    found = measured(client, excluding(condition(metric, "<=", 333_333)))
    assert found.metric(metric) == 333_333
    assert found.exact(metric) == (
        huge * 1_000_000,
        3 * huge,
    )  # a sample without the lower number counts in neither
    assert [m.prefix for m in qualifying(client, excluding(condition(metric, "<=", 333_333)), MARK)] == [
        PREFIXES[0]
    ]
    assert excluded_by(excluding(condition(metric, "<", 333_334)), found) is not None


@pytest.mark.parametrize("metric", [m.name for m in vocabulary.METRICS.values() if "exclude" in m.places])
@pytest.mark.parametrize("comparison", ["<", ">"])
def test_an_excluded_metric_without_a_value_leaves_the_prefix_out(client, metric, comparison):
    sampled(client, [{"snd_cwnd": 10, "delivery_rate": 0, "min_rtt_us": 5_000, "rtt_us": 5_000}])
    measure_by = "cwnd" if metric != "cwnd" else "rtt"
    select = replace(excluding(condition(metric, comparison, 0)), metric=measure_by)
    has_value = metric in {"cwnd", "rtt", "min_rtt"}
    assert (measured(client, select).metric(metric) is not None) is has_value
    assert bool(members(client, select)) is (has_value and comparison == "<")


@pytest.mark.parametrize(
    ("test", "kept", "dropped"),
    [
        (condition("rto", "<", 300_000), {"rto_us": 200_000}, [{"rto_us": 300_000}, {"rto_us": 0}]),
        (condition("ssthresh", "<", 20), {"snd_ssthresh": 10}, [{"snd_ssthresh": 20}, {"snd_ssthresh": 0}]),
        (condition("mss", "<", 1400), {"snd_mss": 536}, [{"snd_mss": 1448}, {"snd_mss": 0}]),
        (condition("lost", "<=", 0), {"lost": 0}, [{"lost": 1}]),
        (condition("reordering", "<=", 3), {"reordering": 3}, [{"reordering": 4}, {"reordering": 0}]),
        (condition("pmtu", "<", 1500), {"pmtu": 1280}, [{"pmtu": 1500}, {"pmtu": 0}]),
        (condition("busy_time", ">=", 9), {"busy_time_us": 9}, [{"busy_time_us": 8}]),
        (condition("snd_wnd", "<=", 0), {"snd_wnd": 0}, [{"snd_wnd": 1}]),
        (condition("notsent_bytes", ">", 0), {"notsent_bytes": 1}, [{"notsent_bytes": 0}]),
        (condition("bytes_sent", ">=", 9), {"bytes_sent": 9}, [{"bytes_sent": 8}]),
        (
            condition("in_slow_start", "==", 1),
            {"snd_cwnd": 9, "snd_ssthresh": 10},
            [{"snd_cwnd": 10, "snd_ssthresh": 10}],
        ),
        (condition("in_recovery", "==", 0), {"ca_state": 2}, [{"ca_state": 3}, {"ca_state": 4}]),
        (condition("app_limited", "==", 0), {}, [{"delivery_rate_app_limited": 1}]),
        (
            condition("rwnd_limited", ">", 100_000),
            {"rwnd_limited_us": 10**13 + 1, "busy_time_us": 10**14},  # a million times that is beyond 64 bits
            [{"rwnd_limited_us": 10**13, "busy_time_us": 10**14}, {"rwnd_limited_us": 1}],
        ),
    ],
)  # fmt: skip
def test_where_admits_samples(client, test, kept, dropped):
    sampled(client, [{"prefix": PREFIXES[0], **kept}, *({"prefix": PREFIXES[1], **d} for d in dropped)])
    assert members(client, replace(BARE, where=(test,), rank=replace(BOTTOM, share_ppm=1_000_000))) == {
        PREFIXES[0]
    }


# --- other tables ---------------------------------------------------------------------------------------


def transferred(client, rows):
    """(window, host address, bytes, microseconds, bits of the address that were kept)."""
    names = ["finished_at", "pop", "host", "remote_address", "remote_prefix_length", "bytes", "duration_us"]
    client.insert(
        "transfers",
        [
            [START + timedelta(seconds=w * STEP_S), "ams1", "h", f"::ffff:{address}", bits, size, duration]
            for w, address, size, duration, bits in rows
        ],
        column_names=names,
    )


def test_goodput_is_the_lower_median_of_the_transfers_of_the_prefix_in_its_observed_windows(client):
    sampled(client, [{"window": w, "prefix": p} for w in (0, 1) for p in PREFIXES[:2]])
    transferred(
        client,
        [
            (0, "198.51.100.1", 1_000, 1_000_000, 128),  # 8,000 bps
            (0, "198.51.100.2", 2_000, 1_000_000, 128),
            (0, "198.51.100.0", 9_000, 1_000_000, 112),  # wider than the prefix: nobody knows whose
            (0, "198.51.100.3", 9_000, 0, 128),  # no duration
            (1, "198.51.100.4", 500, 1_000_000, 120),
            (2, "198.51.100.5", 1, 1_000_000, 128),  # not observed in this window
            (0, "198.51.101.1", 2**62, 1, 128),  # damage
        ],
    )
    select = excluding(condition("goodput", "<", 4_000))
    assert measured(client, select).metric("goodput") == 4_000
    assert measured(client, select, PREFIXES[1]).metric("goodput") is None
    assert {m.prefix for m in qualifying(client, select, MARK)} == {PREFIXES[0]}


def test_cpu_pressure_is_that_of_the_pops_hosts_in_the_prefixs_windows(client):
    sampled(client, [{"window": 0}, {"window": 1, "prefix": PREFIXES[1]}])
    client.insert(
        "host_health",
        [
            [START + timedelta(seconds=w * STEP_S), pop, host, stalled, observed]
            for w, pop, host, stalled, observed in [
                (0, "ams1", "a", 10, 100),
                (0, "ams1", "b", 40, 100),
                (0, "ams1", "c", 9, 0),
                (0, "fra2", "a", 90, 100),
                (2, "ams1", "a", 100, 100),
            ]
        ],
        column_names=["observed_at", "pop", "host", "cpu_stalled_us", "observed_us"],
    )
    select = replace(
        excluding(condition("host_cpu_pressure", ">", 250_000)), rank=replace(BOTTOM, share_ppm=10**6)
    )
    assert measured(client, select).exact("host_cpu_pressure") == (50_000_000, 200)
    assert measured(client, select, PREFIXES[1]).metric("host_cpu_pressure") is None
    assert {m.prefix for m in qualifying(client, select, MARK)} == {PREFIXES[0]}


def test_a_metric_that_only_a_guard_watches_is_measured_too(client):
    sampled(client, [{"pacing_rate": 5}])
    extra = frozenset({"pacing_rate", "rtt"})
    assert measured(client, BARE, extra=extra).metric("pacing_rate") == 40
    assert measured(client, BARE).metric("pacing_rate") is None


# --- views and incumbents -------------------------------------------------------------------------------


def test_windows_are_closed_anew_only_for_what_they_do_not_hold():
    base = view_of(BARE)
    assert view_of(excluding(condition("min_rtt", "<", 10_000))) == base
    assert view_of(replace(BARE, min_windows=Bound(3, CLAUSE, 2), hold_us=1)) == base
    assert view_of(BARE, frozenset({"rtt", "retransmit_ratio"})) == base
    others = [
        view_of(excluding(condition("goodput", "<", 1))),
        view_of(BARE, frozenset({"pacing_rate"})),
        view_of(replace(BARE, rank=replace(BOTTOM, side="top"))),
        *(
            view_of(
                replace(
                    BARE, rank=Rank("bottom", share, condition("delivery_rate", comparison, value), CLAUSE)
                )
            )
            for share in (None, 500_000)
            for comparison in ("<", ">")
            for value in (1, 2)
        ),
    ]
    assert len({base, *others}) == len(others) + 1


@pytest.mark.parametrize(
    ("change", "enters", "remains"),
    [
        ({"min_duty_cycle": Bound(500_000, CLAUSE)}, True, True),
        ({"min_duty_cycle": Bound(750_000, CLAUSE)}, False, False),
        ({"min_duty_cycle": Bound(750_000, CLAUSE, 500_000)}, False, True),
        ({"min_windows": Bound(4, CLAUSE, 3)}, False, True),
        ({"max_flap_rate": Bound(0, CLAUSE, 500_000)}, False, True),
        ({"exclude": (condition("min_rtt", "<", 10_000, 8_000),)}, False, True),
        ({"exclude": (condition("min_rtt", "<", 10_000, 9_001),)}, False, False),
        ({"exclude": (condition("min_rtt", "<", 10_000),)}, False, False),
        ({"exclude": (condition("goodput", "<", 2, 1),)}, False, False),  # not measured
    ],
)
def test_who_is_selected_stays_by_the_bounds_behind_leave(client, change, enters, remains):
    """A member in two of four windows, observed in three, one flip in two pairs, a min_rtt of 9 ms."""
    mine = [{"window": w, "delivery_rate": 100 if w < 2 else 900, "min_rtt_us": 9_000} for w in range(3)]
    sampled(client, [*mine, *({"window": w, "prefix": PREFIXES[1], "delivery_rate": 500} for w in range(3))])
    select = replace(BARE, **change)
    found = measured(client, select)
    assert found.timeline == "110."
    assert (PREFIXES[0] in {m.prefix for m in qualifying(client, select, MARK)}) is enters
    assert stays(select, found) is remains
