"""Fixes do what they say: the mistake is gone behind one, and no other comes in its place."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tidegate_dsl import CheckResult, apply_fixes, check_text, read_limits
from tidegate_dsl.diagnostics import Diagnostic, Edit, Fix, Source, Span, applicable

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
MISTAKES = sorted((HERE / "mistakes").glob("*.tide"))
# The whole language but for its recordings, and without a mistake.
EXAMPLE = """\
edition 2026.1
inventory "../fleet"

select slow {
  measure  delivery_rate by prefix /24 /56
  from     traffic client where bytes_acked >= 100 KB and not app_limited
  over     1h step 5m
  rank     bottom 20% of pop and delivery_rate < 5 Mbps
  require  duty_cycle >= 60% leave < 50%
  require  windows >= 9
  exclude  min_rtt < 10 ms leave < 8 ms
  hold     2h
}

apply bbr_for_slow {
  to       slow
  in       all except iad1
  set      congestion_control bbr
  when     transfer_size >= 100 KB
  limit    500 prefixes per pop
  limit    40 new prefixes per run
  hold_out 10% of prefixes
  active   2026-12-01 until 2026-12-31
  override fra2 { when transfer_size >= 250 KB }
}

learn back_office {
  observe  cwnd by destination
  toward   peer_pops, origins
  in       europe
  smooth   0.5 every 1s
  set      initcwnd between 10 and 100 segments
  set      initrwnd 100 segments
  expire   10m
  hold_out 10% of destinations
}

initcwnd documentation {
  for      198.51.100.0/24, ipv6
  in       all
  set      initcwnd 20 segments
}

test "slow now and then" {
  given    192.0.2.0/24 in fra2 membership "100..."
  expect   slow excludes 192.0.2.0/24 because duty_cycle
}
"""


def check(text: str) -> CheckResult:
    return check_text(text, "x.tide", limits=LIMITS, directory=HERE / "mistakes")


def told(diagnostics: tuple[Diagnostic, ...], of: Diagnostic) -> Counter[str]:
    """Which mistakes, without their places: those below a removed line move.

    Warnings are told only where no error is left, so beside an error they do not count.
    """
    counted = {"error", of.severity}
    return Counter(found.code for found in diagnostics if found.severity in counted)


def alone(text: str, diagnostic: Diagnostic) -> CheckResult:
    """The file with only this fix."""
    return check(apply_fixes(text, [diagnostic]))


def fixed(path: Path) -> list[tuple[str, Diagnostic]]:
    text = path.read_bytes().decode()
    return [(text, found) for found in check(text).diagnostics if found.fix]


FIXES = [
    pytest.param(text, found, id=f"{path.stem}-{found.span.line}")
    for path in MISTAKES
    for text, found in fixed(path)
]


@pytest.mark.parametrize(("text", "diagnostic"), FIXES)
def test_a_fix_removes_its_mistake_and_adds_none(text: str, diagnostic: Diagnostic) -> None:
    before, after = (
        told(check(text).diagnostics, diagnostic),
        told(alone(text, diagnostic).diagnostics, diagnostic),
    )

    assert after == before - Counter([diagnostic.code])


@pytest.mark.parametrize(("text", "diagnostic"), FIXES)
def test_edits_of_one_fix_do_not_overlap(text: str, diagnostic: Diagnostic) -> None:
    assert diagnostic.fix
    extents = sorted(Source("", text).extent(edit.span) for edit in diagnostic.fix.edits)
    assert all(one[1] <= other[0] for one, other in pairwise(extents))
    assert all(0 <= start <= end <= len(text.encode()) for start, end in extents)


@st.composite
def slips(draw: st.DrawFn) -> str:
    """The example with one slip of the pen: a letter left out, doubled, swapped or changed, or a strange blank."""
    if draw(st.booleans()):
        blank = draw(st.sampled_from([at for at, letter in enumerate(EXAMPLE) if letter == " "]))
        return f"{EXAMPLE[:blank]}\N{NO-BREAK SPACE}{EXAMPLE[blank + 1 :]}"
    words = [
        (start, start + len(word))
        for start, word in _words(EXAMPLE)
        # A mistyped prefix is another prefix, of which nothing is given.
        if len(word) > 1 and not word.startswith('"') and "/" not in word
    ]
    start, end = draw(st.sampled_from(words))
    at = draw(st.integers(start, end - 1))
    swapped = EXAMPLE[at : min(at + 2, end)][::-1]
    # A sign in a word would cut it in two, and that is two slips.
    letters = "<>=" if EXAMPLE[at] in "<>=" else "abcxyz0159-_"
    put = draw(
        st.sampled_from(["", EXAMPLE[at] * 2, swapped, EXAMPLE[at].swapcase()])
        | st.text(letters, min_size=1, max_size=2)
    )
    taken = len(swapped) if put == swapped else 1
    return EXAMPLE[:at] + put + EXAMPLE[at + taken :]


def _words(text: str) -> list[tuple[int, str]]:
    places: list[tuple[int, str]] = []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        places.append((at, word))
        at += len(word)
    return places


def test_the_example_of_slips_has_no_mistake() -> None:
    assert check(EXAMPLE).policy is not None


@given(slips())
@settings(max_examples=200, deadline=None)
def test_fixes_of_one_slip_leave_nothing_new(text: str) -> None:
    result = check(text)
    for diagnostic in result.diagnostics:
        if diagnostic.fix:
            after = alone(text, diagnostic)
            before = told(result.diagnostics, diagnostic)
            assert told(after.diagnostics, diagnostic) <= before - Counter([diagnostic.code])


@given(st.lists(slips(), min_size=2, max_size=4))
@settings(max_examples=50, deadline=None)
def test_all_fixes_together_are_as_good_as_one_by_one(texts: list[str]) -> None:
    text = "\n".join(texts)
    fixable = [found for found in check(text).diagnostics if found.fix]
    assume(fixable)
    together = apply_fixes(text, fixable)
    assert together == apply_fixes(text, applicable(text, fixable))
    assert apply_fixes(text, []) == text


@pytest.mark.parametrize(
    ("right", "written"),
    [
        pytest.param("60%", "0.6", id="share of one"),
        pytest.param("60%", "1", id="all or a hundredth"),
        pytest.param("5 Mbps", "5 MBps", id="bytes, eight times as many"),
        pytest.param("100 KB", "100 Kb", id="bits"),
        pytest.param("1h", "1", id="no unit"),
        pytest.param("and 100 segments", "and 1000 segments", id="a window beyond the limit"),
        pytest.param("limit    500", "limit    5000", id="a count beyond the limit"),
        pytest.param("prefix /24", "prefix /2", id="a length beyond the limit"),
        pytest.param("windows >= 9", "windows >= 90", id="more windows than there are"),
        pytest.param("congestion_control bbr", "congestion_control bbr2", id="another algorithm"),
        pytest.param("override fra2", "override fra1", id="another place"),
        pytest.param("select slow {", "select Slow {", id="a name to one that is none"),
    ],
)
def test_no_fix_guesses_what_only_the_author_knows(right: str, written: str) -> None:
    assert right in EXAMPLE
    found = check(EXAMPLE.replace(right, written, 1)).diagnostics

    assert found
    assert [each.fix for each in found] == [None] * len(found)


def test_of_two_fixes_of_one_place_the_first_is_made() -> None:
    def fixed(start: int, end: int, text: str) -> Diagnostic:
        span = Span(1, start + 1, end + 1)
        return Diagnostic("x", "P101", "error", "", span, fix=Fix("", (Edit(span, text),)))

    inside = [fixed(0, 3, "one"), fixed(2, 4, "two"), fixed(4, 5, "three")]
    assert apply_fixes("abcdef", inside) == "onedthreef"
    assert apply_fixes("abcdef", [fixed(2, 2, "X"), fixed(2, 2, "Y")]) == "abXcdef"
    assert apply_fixes("ä\u00a0b", [fixed(1, 2, " ")]) == "ä b"
