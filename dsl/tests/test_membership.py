"""`judge` against a reference that counts window by window, as the specification says."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_dsl import judge
from tidegate_dsl.model import Bound, Clause, Rank, Select, missed

AT = Clause(1, "")


def select(windows: int, least: int | None, duty_ppm: int | None, flap_ppm: int | None) -> Select:
    def bound(value: int | None) -> Bound | None:
        return None if value is None else Bound(value, AT)

    return Select(
        name="slow",
        clause=AT,
        metric="delivery_rate",
        prefix_length_ipv4=24,
        prefix_length_ipv6=56,
        traffic="client",
        where=(),
        over_us=windows * 1_000_000,
        step_us=1_000_000,
        rank=Rank("bottom", 200_000, None, AT),
        min_duty_cycle=bound(duty_ppm),
        max_flap_rate=bound(flap_ppm),
        min_windows=bound(least),
        min_samples=None,
        exclude=(),
        hold_us=0,
        hold=None,
    )


def reference(membership: str, least: int | None, duty_ppm: int | None, flap_ppm: int | None) -> list[str]:
    observed = member = pairs = flips = 0
    before = "."
    for window in membership:
        if window != ".":
            observed += 1
            if window == "1":
                member += 1
            if before != ".":
                pairs += 1
                if before != window:
                    flips += 1
        before = window
    misses = []
    if observed == 0 or (least is not None and observed < least):
        misses.append("windows")
    if member == 0 or Fraction(member, len(membership)) < Fraction(duty_ppm or 0, 10**6):
        misses.append("duty_cycle")
    if flap_ppm is not None and pairs and Fraction(flips, pairs) > Fraction(flap_ppm, 10**6):
        misses.append("flap_rate")
    return misses


PPM = st.none() | st.integers(0, 1_000_000) | st.sampled_from([333_333, 333_334, 500_000])


@settings(deadline=None)
@given(st.text(st.sampled_from("10."), min_size=1, max_size=128), st.none() | st.integers(1, 128), PPM, PPM)
def test_agrees_with_counting(membership: str, least: int | None, duty: int | None, flap: int | None) -> None:
    rule = select(len(membership), least, duty, flap)
    expected = reference(membership, least, duty, flap)
    assert list(missed(rule, membership)) == expected
    assert judge(rule, membership) == (not expected, expected[0] if expected else None)


def test_a_bound_is_inclusive_to_the_last_part_per_million() -> None:
    assert judge(select(3, None, 333_333, None), "100") == (True, None)
    assert judge(select(3, None, 333_334, None), "100") == (False, "duty_cycle")
    assert judge(select(4, None, None, 333_334), "1000") == (True, None)
    assert judge(select(4, None, None, 333_333), "1000") == (False, "flap_rate")


@pytest.mark.parametrize("membership", ["11", "1111", "1x1"])
def test_another_string_than_the_lookbacks_is_refused(membership: str) -> None:
    with pytest.raises(ValueError, match="3 characters"):
        judge(select(3, None, None, None), membership)
