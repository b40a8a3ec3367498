"""The analysis of a whole policy against brute force: every membership string, every value that matters."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_dsl import check_file, check_text, judge, read_limits, render
from tidegate_dsl.analysis.conditions import (
    absolute_is_idle,
    excluding_all,
    has_no_member,
    idle_conditions,
    idle_excludes,
)
from tidegate_dsl.analysis.formed import MEDIANS, MINIMA
from tidegate_dsl.analysis.persistence import fewest_members, greatest_flips, idle_requirements
from tidegate_dsl.model import Bound, Clause, Comparison, Condition, Rank, Select, figures

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMITS = read_limits(HERE / "limits.yaml")
AT = Clause(1, "")
PPM = 1_000_000

SELECT = Select(
    name="slow",
    clause=AT,
    metric="delivery_rate",
    prefix_length_ipv4=24,
    prefix_length_ipv6=56,
    traffic="client",
    where=(),
    over_us=1_000_000,
    step_us=1_000_000,
    rank=Rank("bottom", PPM, None, AT),
    min_duty_cycle=None,
    max_flap_rate=None,
    min_windows=None,
    min_samples=None,
    exclude=(),
    hold_us=0,
    hold=None,
)
BOUND_OF = {"windows": "min_windows", "duty_cycle": "min_duty_cycle", "flap_rate": "max_flap_rate"}
STATES = (False, True)


def strings(lookback: int) -> Iterator[str]:
    return ("".join(windows) for windows in product("10.", repeat=lookback))


def qualifying(select: Select) -> set[tuple[bool, str]]:
    """Every string that enters, and every string that stays."""
    return {
        (selected, membership)
        for selected in STATES
        for membership in strings(select.windows)
        if judge(select, membership, selected=selected)[0]
    }


@st.composite
def required(draw: st.DrawFn, longest: int = 6) -> Select:
    """A select with any bounds on membership, and any `leave` that is no stricter."""
    lookback = draw(st.integers(1, longest))
    shares = st.sampled_from([round(n * PPM / d) for d in range(1, lookback + 1) for n in range(d + 1)])
    near = st.builds(lambda share, by: min(PPM, max(0, share + by)), shares, st.integers(-1, 1))

    def bound(values: st.SearchStrategy[int], *, upward: bool) -> Bound | None:
        value = draw(st.none() | values)
        if value is None:
            return None
        leave = draw(st.none() | values.filter(lambda other: other <= value if upward else other >= value))
        return Bound(value, AT, leave)

    return replace(
        SELECT,
        over_us=lookback * 1_000_000,
        min_windows=bound(st.integers(1, lookback), upward=True),
        min_duty_cycle=bound(near | st.just(0), upward=True),
        max_flap_rate=bound(near | st.just(PPM), upward=False),
    )


@given(required())
@settings(max_examples=150, deadline=None)
def test_a_requirement_is_idle_just_when_no_string_needs_it(select: Select) -> None:
    found = idle_requirements(select)
    rest = select
    expected = []
    for reason in ("windows", "flap_rate", "duty_cycle"):
        without = replace(rest, **{BOUND_OF[reason]: None})
        if getattr(rest, BOUND_OF[reason]) is not None and qualifying(without) == qualifying(rest):
            expected.append(reason)
            rest = without
    assert list(found) == expected


@pytest.mark.parametrize("lookback", range(2, 9))
def test_the_greatest_flap_rate_and_the_fewest_members_are_those_of_all_strings(lookback: int) -> None:
    seen = [figures(membership) for membership in strings(lookback)]
    pairs = lookback - 1
    for members in range(1, lookback + 1):
        rates = [Fraction(each.flips, each.pairs) for each in seen if each.pairs and each.member >= members]
        assert max(rates) == Fraction(greatest_flips(lookback, members), pairs)
    for windows, flap in product(range(1, lookback + 1), [0, PPM // pairs - 1, -(-PPM // pairs), PPM]):
        fewest = min(
            each.member
            for each in seen
            if each.member and each.observed >= windows and each.flips * PPM <= flap * each.pairs
        )
        assert fewest == fewest_members(lookback, windows, flap)


@given(required(longest=128))
@settings(deadline=None)
def test_requirements_alone_never_contradict_each_other(select: Select) -> None:
    assert judge(select, "1" * select.windows) == (True, None)


COMPARISONS: tuple[Comparison, ...] = ("<", "<=", ">", ">=")
VALUES = range(6)  # conditions compare with 1 to 4, so that every case of order with a value is among them


def conditions(metrics: Iterable[str], most: int) -> st.SearchStrategy[tuple[Condition, ...]]:
    metric = st.sampled_from(list(metrics))
    one = st.builds(Condition, metric, st.sampled_from(COMPARISONS), st.integers(1, 4), st.just(AT))
    return st.lists(one, max_size=most).map(tuple)


def true(condition: Condition, value: int, *, selected: bool = False) -> bool:
    bound = condition.leave if selected and condition.leave is not None else condition.value
    compared = {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}
    return compared[condition.comparison]


@st.composite
def ranked(draw: st.DrawFn) -> Select:
    """A select by an absolute rank, with conditions on the measured metric and one other."""
    metric = draw(st.sampled_from(["delivery_rate", "min_rtt"]))
    lookback = draw(st.integers(1, 4))
    absolute = draw(conditions([metric], 1))
    duty = draw(st.none() | st.integers(0, lookback).map(lambda n: n * PPM // lookback))
    excludes = []
    for clause in draw(conditions([metric, "rtt"], 3)):
        near = st.integers(1, clause.value) if clause.comparison[0] == "<" else st.integers(clause.value, 4)
        excludes.append(replace(clause, leave=draw(st.none() | near)))
    return replace(
        SELECT,
        metric=metric,
        over_us=lookback * 1_000_000,
        where=draw(conditions([metric, "rtt"], 2)),
        rank=Rank("bottom", PPM if not absolute else None, absolute[0] if absolute else None, AT),
        min_duty_cycle=None if duty is None else Bound(duty, AT, draw(st.none() | st.integers(0, duty))),
        exclude=tuple(excludes),
    )


def passing(select: Select, metric: str) -> list[int]:
    return [v for v in VALUES if all(true(c, v) for c in select.where if c.metric == metric)]


def over_lookback(metric: str, windows: Iterable[int]) -> int:
    values = sorted(windows)
    return values[0] if metric in MINIMA else values[(len(values) + 1) // 2 - 1]


def lookbacks(select: Select, *, selected: bool) -> set[int]:
    """The measured metric over the lookback of everyone whose membership qualifies, by trying all windows."""
    absolute = select.rank.absolute
    found = set()
    for windows in product([None, *passing(select, select.metric)], repeat=select.windows):
        membership = "".join(
            "." if value is None else "1" if absolute is None or true(absolute, value) else "0"
            for value in windows
        )
        if judge(select, membership, selected=selected)[0]:
            found.add(over_lookback(select.metric, [value for value in windows if value is not None]))
    return found


def remaining(select: Select, excludes: Iterable[Condition], *, selected: bool) -> set[tuple[int, int]]:
    """Values over the lookback, of the measured metric and of `rtt`, that no clause leaves out."""
    excludes = list(excludes)

    def left(metric: str, values: Iterable[int]) -> list[int]:
        clauses = [clause for clause in excludes if clause.metric == metric]
        return [v for v in values if not any(true(clause, v, selected=selected) for clause in clauses)]

    measured = left(select.metric, lookbacks(select, selected=selected))
    return set(product(measured, left("rtt", passing(select, "rtt"))))


@given(ranked())
@settings(max_examples=150, deadline=None)
def test_a_select_is_refused_just_when_no_values_are_selected(select: Select) -> None:
    if not all(passing(select, metric) for metric in (select.metric, "rtt")):
        return  # refused before, as C113
    refused = has_no_member(select) or excluding_all(select) is not None
    assert refused == (not remaining(select, select.exclude, selected=False))


@given(ranked())
@settings(max_examples=150, deadline=None)
def test_an_exclude_is_idle_only_when_none_is_left_out_by_it(select: Select) -> None:
    if has_no_member(select) or excluding_all(select) is not None:
        return
    idle = idle_excludes(select)
    kept = [clause for index, clause in enumerate(select.exclude) if index not in idle]
    for selected in STATES:
        assert remaining(select, kept, selected=selected) == remaining(
            select, select.exclude, selected=selected
        )


@given(ranked())
@settings(max_examples=150, deadline=None)
def test_a_condition_is_idle_just_when_the_others_imply_it(select: Select) -> None:
    idle = idle_conditions(select.where)
    kept = [clause for index, clause in enumerate(select.where) if index not in idle]

    def passes(clauses: Iterable[Condition], metric: str) -> list[int]:
        return [v for v in VALUES if all(true(c, v) for c in clauses if c.metric == metric)]

    for metric in (select.metric, "rtt"):
        assert passes(kept, metric) == passes(select.where, metric)
    if all(passing(select, metric) for metric in (select.metric, "rtt")):
        for index, clause in enumerate(kept):
            others = [*kept[:index], *kept[index + 1 :]]
            alone = not any(other.metric == clause.metric for other in others)
            assert alone or passes(others, clause.metric) != passes(kept, clause.metric)


@given(ranked())
@settings(max_examples=150, deadline=None)
def test_a_rank_is_idle_only_when_every_window_fulfils_it(select: Select) -> None:
    if absolute_is_idle(select):
        assert select.rank.absolute is not None
        assert all(true(select.rank.absolute, value) for value in passing(select, select.metric))


def condition(metric: str, comparison: Comparison, value: int, leave: int | None = None) -> Condition:
    return Condition(metric, comparison, value, AT, leave)


def test_the_lowest_round_trip_time_of_a_low_rank_is_a_members() -> None:
    low, high = condition("min_rtt", "<", 3), condition("min_rtt", ">=", 3)
    ranked = replace(SELECT, metric="min_rtt", over_us=4_000_000)
    by_low = replace(ranked, rank=Rank("bottom", None, low, AT), exclude=(low,))
    by_high = replace(ranked, rank=Rank("bottom", None, high, AT), exclude=(high,))
    always = replace(by_high, min_duty_cycle=Bound(PPM, AT))
    assert [excluding_all(each) for each in (by_low, by_high, always)] == [0, None, 0]


def test_an_exclude_that_strikes_only_who_is_selected_already_is_not_idle() -> None:
    firm, loose = condition("rtt", "<", 3), condition("rtt", "<", 3, leave=1)
    assert idle_excludes(replace(SELECT, exclude=(firm, loose))) == (1,)
    assert idle_excludes(replace(SELECT, exclude=(loose, firm))) == (0,)
    assert idle_excludes(replace(SELECT, exclude=(loose, loose))) == (1,)


def test_an_exclude_that_only_demands_a_value_is_not_idle() -> None:
    demand = condition("goodput", "<", 0)
    assert idle_excludes(replace(SELECT, exclude=(demand,))) == ()
    assert idle_excludes(replace(SELECT, exclude=(demand, condition("goodput", "<", 5)))) == (0,)


def test_of_two_conditions_alike_the_second_is_too_many() -> None:
    assert idle_conditions((condition("rtt", "<", 3), condition("rtt", "<", 3))) == (1,)


def test_metrics_are_formed_as_the_specification_says() -> None:
    spec = (ROOT / "dsl" / "SPEC.md").read_text(encoding="utf-8")
    formed = {
        row.split("|")[1].strip(" `"): row.split("|")[5].strip()
        for row in spec.splitlines()
        if row.count("|") == 6 and "tcpi_" in row
    }
    assert {name for name, how in formed.items() if how == "lower median"} == MEDIANS
    assert {name for name, how in formed.items() if how == "minimum"} == MINIMA


@pytest.mark.parametrize("name", ["edge.tide", "trial.tide"])
def test_the_examples_are_without_a_warning(name: str) -> None:
    result = check_file(ROOT / "dsl" / "examples" / name, limits=ROOT / "policies" / "limits.yaml")
    assert render(result) == ""


# Rules: what covers what, and what overlaps.

HEAD = """edition 2026.1
inventory "fleet"
"""


def select(name: str, *clauses: str, lengths: str = "/24 /56", traffic: str = "client") -> str:
    rank = "rank bottom 20% of pop" if not any(c.startswith("rank") for c in clauses) else ""
    return "\n".join(
        [
            f"select {name} {{",
            f"measure delivery_rate by prefix {lengths}",
            f"from traffic {traffic}",
            "over 1h step 5m",
            rank,
            *clauses,
            "}",
            f'test "{name}" {{',
            'given 192.0.2.0/24 in fra2 membership "1..."'
            if lengths.startswith("/24")
            else 'given 192.0.2.0/28 in fra2 membership "1..."',
            f"expect {name} includes 192.0.2.0/{lengths[1:3]}",
            "}",
            "",
        ]
    )


def apply(name: str, to: str, *clauses: str, pops: str = "all", algorithm: str = "bbr") -> str:
    lines = [
        f"to {to}",
        f"in {pops}",
        f"set congestion_control {algorithm}",
        "hold_out 10% of prefixes",
        *clauses,
    ]
    return f"apply {name} {{\n" + "\n".join(lines) + "\n}\n"


def codes(*blocks: str) -> list[str]:
    result = check_text(HEAD + "".join(blocks), str(HERE / "x.tide"), limits=LIMITS)
    return [found.code for found in result.diagnostics]


FIRST, SECOND = apply("first", "slow"), apply("second", "slow", algorithm="cubic")


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([FIRST, SECOND], ["C125"]),
        ([apply("first", "slow", pops="europe"), SECOND], []),
        ([apply("first", "slow", pops="europe"), apply("other", "slow", pops="iad1"), SECOND], ["C125"]),
        ([apply("first", "slow", "limit 5 prefixes per pop"), SECOND], []),
        ([apply("first", "slow", "override fra2 { limit 5 prefixes per pop }"), SECOND], []),
        ([apply("first", "slow", "limit 5 new prefixes per run"), SECOND], []),
        ([FIRST, SECOND, "guard g {\nwatch first\nlimit churn <= 10% per run\n}\n"], []),
        ([apply("first", "slow", "active 2026-12-01 until 2026-12-02"), SECOND], []),
        (
            [
                apply("first", "slow", "active 2026-12-01 until 2026-12-02"),
                apply("next", "slow", "active 2026-12-02 until 2026-12-04"),
                apply("second", "slow", "active 2026-12-01 until 2026-12-03"),
            ],
            ["C125"],
        ),
        (
            [
                apply("first", "slow", "active 2026-12-01 until 2026-12-02"),
                apply("next", "slow", "active 2026-12-02T00:05Z until 2026-12-04"),
                apply("second", "slow", "active 2026-12-01 until 2026-12-03"),
            ],
            [],
        ),
        (
            [
                apply("first", "slow", "active 2026-12-02 until 2026-12-03", pops="iad1"),
                apply("next", "slow", "active 2026-12-01 until 2026-12-09", pops="iad1"),
                apply("last", "slow", "active 2026-12-08 until 2026-12-12", pops="iad1"),
                apply("second", "slow", "active 2026-12-01 until 2026-12-10", pops="iad1"),
            ],
            ["C125"],
        ),
        ([FIRST, SECOND, "guard g {\nwatch second\nlimit churn <= 10% per run\n}\n"], ["C125"]),
    ],
)
def test_a_rule_is_dead_just_when_earlier_ones_have_all(blocks: list[str], expected: list[str]) -> None:
    assert codes(select("slow"), *blocks) == expected


@pytest.mark.parametrize(
    ("active", "dead"),
    [
        ("2026-12-01T06:00Z until 2026-12-01T06:01Z", False),
        ("2026-12-01T06:01Z until 2026-12-01T06:05Z", True),
        ("2026-12-01T06:01Z until 2026-12-01T06:06Z", False),
    ],
)
def test_a_rule_needs_a_watermark_in_its_time(active: str, dead: bool) -> None:
    assert codes(select("slow"), apply("rule", "slow", f"active {active}")) == (["C125"] if dead else [])


@pytest.mark.parametrize(
    ("one", "other", "rules", "expected"),
    [
        (select("a"), select("b", "exclude rtt < 1 ms"), {}, ["W109"]),
        (select("a"), select("b", lengths="/28 /56"), {}, ["W109"]),
        (select("a"), select("b", "exclude rtt < 1 ms"), {"algorithm": "bbr"}, []),
        (select("a"), select("b", traffic="origin"), {}, []),
        (
            select("a", "rank delivery_rate < 2 Mbps", "require duty_cycle >= 60%"),
            select("b", "rank delivery_rate > 9 Mbps", "require duty_cycle >= 60%"),
            {},
            [],
        ),
        (
            select("a", "rank delivery_rate < 2 Mbps", "require duty_cycle >= 50%"),
            select("b", "rank delivery_rate > 9 Mbps", "require duty_cycle >= 50%"),
            {},
            ["W109"],
        ),
    ],
)
def test_rules_overlap_where_one_connection_could_follow_both(
    one: str, other: str, rules: dict[str, str], expected: list[str]
) -> None:
    second = apply("second", "b", algorithm=rules.get("algorithm", "cubic"))
    assert codes(one, other, apply("first", "a"), second) == expected


def test_rules_in_other_pops_or_at_other_times_do_not_overlap() -> None:
    both = [select("a"), select("b", "exclude rtt < 1 ms")]
    second = apply("second", "b", "active 2026-12-02 until 2026-12-03", algorithm="cubic", pops="europe")
    assert codes(*both, apply("first", "a", pops="iad1"), second) == []
    assert codes(*both, apply("first", "a", "active 2026-12-01 until 2026-12-02"), second) == []
    assert codes(*both, apply("first", "a", "active 2026-12-01 until 2026-12-02T00:01Z"), second) == ["W109"]


@pytest.mark.parametrize(("hold", "expected"), [("5m", ["W105"]), ("301s", [])])
def test_a_hold_must_outlast_a_run(hold: str, expected: list[str]) -> None:
    assert codes(select("a", f"hold {hold}"), apply("first", "a")) == expected


@pytest.mark.parametrize(
    ("other", "hold", "expected"),
    [
        pytest.param("over 10m step 1m", "5m", ["W105"], id="every fifth window of the other"),
        pytest.param("over 10m step 1m", "301s", [], id="longer than the longest step"),
        pytest.param("over 1h step 10m", "10m", ["W105"], id="only every second window"),
        pytest.param("over 1h step 10m", "601s", [], id="longer than that"),
        pytest.param("over 42m step 7m", "5m", [], id="at times one of the two, at times the other"),
    ],
)
def test_a_hold_must_outlast_the_longest_step_of_all_selects(
    other: str, hold: str, expected: list[str]
) -> None:
    second = select("b").replace("over 1h step 5m", other)
    rules = [apply("first", "a", pops="europe"), apply("second", "b", pops="iad1")]
    assert codes(select("a", f"hold {hold}"), second, *rules) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param("step 10m", [], id="one turn a run"),
        pytest.param("step 12m", ["W117"], id="a turn that no run sees"),
        pytest.param("step 2m", [], id="several runs a turn"),
    ],
)
def test_a_turn_must_outlast_the_time_between_two_runs(step: str, expected: list[str]) -> None:
    slow = select("slow").replace("step 5m", step)
    assert codes(slow, FIRST, "experiment turns {\non first\nswitchback 10m\n}\n") == expected
