"""`# allow CODE: reason` silences what it names, where it stands, and nothing else."""

from pathlib import Path

import pytest
from tidegate_dsl import check_text, read_limits

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
POLICY = """edition 2026.1
inventory "fleet"
BEFORE
select slow { BEHIND
  measure rtt by prefix /24 /56
  from traffic client
  over 1h step 5m
  rank bottom 20% of pop
  require duty_cycle >= 1% leave < 1% CLAUSE
}
apply treat {
  to slow
  in all
  set congestion_control bbr
  hold_out 10% of prefixes
}
"""  # W102 on the select's header, W104 and W108 on its last clause


def codes(before: str = "", behind: str = "", clause: str = "") -> list[str]:
    text = POLICY.replace("BEFORE", before).replace("BEHIND", behind).replace("CLAUSE", clause)
    return [found.code for found in check_text(text, str(HERE / "x.tide"), limits=LIMITS).diagnostics]


ALL = ["W102", "W104", "W108"]


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# allow W104: why", ["W102", "W108"]),
        ("# allow W104, W108: why", ["W102"]),
        ("#allow W108 ,W104 : why", ["W102"]),
        ("# allow bbr where it harms nobody", ALL),
        ("# allow W1: no code", ALL),
        ("# allowed W104: why", ALL),
        ("# allow W102: on another line", ["W102", "W104", "W108", "W111"]),
        ("# allow W102, W111: on another line", ALL),
    ],
)
def test_at_the_end_of_a_line_it_is_about_that_line(comment: str, left: list[str]) -> None:
    assert sorted(codes(clause=comment)) == left


@pytest.mark.parametrize(
    "before",
    ["# allow W102: why", "  # allow W102: why\n", "# allow W102: why\n# more about it\n\n"],
)
def test_alone_it_is_about_the_next_line_with_code(before: str) -> None:
    assert codes(before=before) == ["W104", "W108"]


def test_a_header_has_the_warnings_of_its_block_and_not_those_of_clauses() -> None:
    assert codes(behind="# allow W102: why") == ["W104", "W108"]
    assert codes(behind="# allow W104: why") == ["W102", "W111", "W104", "W108"]


def test_several_may_silence_one_line() -> None:
    assert codes(before="# allow W102: why\n# allow W102: twice", clause="# allow W104, W108: why") == []


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("# allow W104", "P110"),
        ("# allow W104:", "P110"),
        ("# allow W104: ", "P110"),
        ("# allow W104 W108: why", "P110"),
        ("# allow W104 because of that", "P110"),
        ("# allow W999: why", "N111"),
        ("# allow w104: why", "N111"),
        ("# allow C116: why", "C130"),
    ],
)
def test_one_that_is_wrong_is_an_error_wherever_it_stands(comment: str, code: str) -> None:
    assert codes(clause=comment) == [code]
    assert codes(before=comment) == [code]


def test_beside_an_error_nothing_is_said_of_warnings_or_of_what_silences_them() -> None:
    text = POLICY.replace("BEFORE", "# allow W102: why").replace("BEHIND", "").replace("CLAUSE", "")
    result = check_text(text.replace("20%", "20"), str(HERE / "x.tide"), limits=LIMITS)
    assert [found.code for found in result.diagnostics] == ["T101"]


def test_in_a_string_it_is_text() -> None:
    text = POLICY.replace("BEFORE", 'test "# allow W104" {\ngiven 192.0.2.0/24 in fra2 membership "1..."\n')
    text = text.replace("\nselect", "expect slow includes 192.0.2.0/24\n}\nselect", 1)
    found = check_text(
        text.replace("BEHIND", "").replace("CLAUSE", ""), str(HERE / "x.tide"), limits=LIMITS
    ).diagnostics
    assert [each.code for each in found] == ["W104", "W108"]
