"""What a right policy means, and that no text at all breaks the checker."""

import re
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sound import assert_sound
from tidegate_dsl import CheckResult, check_file, check_text, read_limits, render, summary
from tidegate_dsl.model import Bound, Clause, Condition, Membership, Policy
from tidegate_dsl.vocabulary import BLOCKS, METRICS, OVERRIDE, TOP_LEVEL, UNITS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMITS = read_limits(HERE / "limits.yaml")
EXAMPLE = ROOT / "dsl" / "examples" / "edge.tide"
TEXT = EXAMPLE.read_text(encoding="utf-8").replace("../../inventory", str(HERE / "fleet"))

POLICY = """edition 2026.1
inventory "fleet"
select slow {
  measure rtt by prefix /24 /56
  from traffic client
  over 1h step 5m
  rank bottom 20% of pop
}
apply treat {
  to slow
  in all
  set congestion_control bbr
  hold_out 10% of prefixes
}
test "slow all the time" {
  given 192.0.2.0/24 in fra2 membership "1..."
  expect slow includes 192.0.2.0/24
}
"""


def check(text: str) -> CheckResult:
    return check_text(text, str(HERE / "edge.tide"), limits=LIMITS)


def checked(text: str) -> Policy:
    result = check(text)
    assert result.policy is not None, render(result)
    return result.policy


class TestExample:
    def test_is_clean_against_the_example_inventory_and_the_real_limits(self) -> None:
        result = check_file(EXAMPLE, limits=ROOT / "policies" / "limits.yaml")
        assert render(result) == ""
        assert result.policy is not None
        assert result.policy.applies[0].pops == ("ams1", "fra2", "sin1")
        assert result.policy.learns[0].pops == ("ams1", "fra2", "iad1", "sin1")
        assert (Path(result.policy.inventory) / "hosts.yml").samefile(ROOT / "inventory" / "hosts.yml")

    def test_comes_out_in_base_units(self) -> None:
        policy = checked(TEXT)
        select, rule, learn = policy.selects[0], policy.applies[0], policy.learns[0]
        assert (select.over_us, select.step_us, select.windows) == (21_600_000_000, 300_000_000, 72)
        assert select.where[0].value == 100_000
        assert select.where[1] == Condition("app_limited", "==", 0, select.where[0].clause)
        assert select.min_duty_cycle == Bound(600_000, Clause(10, "require duty_cycle >= 60%"))
        assert [(c.metric, c.comparison, c.value) for c in select.exclude] == [
            ("min_rtt", "<", 10_000),
            ("retransmit_ratio", "<", 5_000),
        ]
        assert select.hold_us == 7_200_000_000
        assert rule.min_bytes == {"ams1": 100_000, "fra2": 250_000}
        assert rule.hold_out_ppm == 100_000
        assert not rule.ungated_fallback
        assert (learn.smooth_ppm, learn.every_us, learn.expire_us) == (500_000, 1_000_000, 600_000_000)
        assert (learn.hold_out_ppm, learn.initrwnd) == (0, None)
        assert policy.tests[0].given == Membership("192.0.2.0/24", "fra2", "10" * 36, selected=False)

    def test_digest_is_that_of_the_files_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "crlf.tide"
        path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
        result = check_file(path, limits=HERE / "limits.yaml")
        assert result.policy is not None, render(result)
        assert result.policy.digest == f"sha256:{sha256(path.read_bytes()).hexdigest()}"


class TestMeaning:
    def test_what_is_not_written_has_no_bound(self) -> None:
        select = checked(POLICY).selects[0]
        bounds = (
            select.min_duty_cycle,
            select.max_flap_rate,
            select.min_windows,
            select.min_samples,
            select.hold,
        )
        assert bounds == (None,) * 5
        assert (select.where, select.exclude, select.hold_us) == ((), (), 0)

    @pytest.mark.parametrize(
        ("written", "pops"),
        [
            ("all", ("ams1", "fra2", "iad1")),
            ("europe", ("ams1", "fra2")),
            ("east, ams1", ("ams1", "iad1")),
            ("all except europe", ("iad1",)),
            ("all except americas, ams1", ("fra2",)),
        ],
    )
    def test_a_pop_set_is_expanded(self, written: str, pops: tuple[str, ...]) -> None:
        assert checked(POLICY.replace("in all", f"in {written}")).applies[0].pops == pops

    def test_thresholds_are_resolved_by_pop(self) -> None:
        text = POLICY.replace(
            "  in all\n",
            "  in all\n  when transfer_size >= 1 MB\n  fallback ungated\n"
            "  override fra2 { when transfer_size >= 2 MiB }\n"
            "  override ams1 {\n    when transfer_size >= 3 KB\n  }\n",
        )
        rule = checked(text).applies[0]
        assert rule.min_bytes == {"ams1": 3_000, "fra2": 2_097_152, "iad1": 1_000_000}
        assert rule.ungated_fallback

    def test_without_a_threshold_a_rule_applies_from_the_start(self) -> None:
        assert set(checked(POLICY).applies[0].min_bytes.values()) == {0}

    def test_an_inventory_given_apart_replaces_the_named_one(self) -> None:
        text = POLICY.replace('inventory "fleet"\n', "")
        result = check_text(text, "edge.tide", limits=LIMITS, inventory=HERE / "fleet" / "hosts.yml")
        assert result.policy is not None
        assert result.policy.inventory == str(HERE / "fleet")

    @pytest.mark.parametrize("name", UNITS)
    @settings(deadline=None)
    @given(mantissa=st.integers(0, 10**6), scale=st.integers(0, 9))
    def test_units_are_exact_or_refused(self, name: str, mantissa: int, scale: int) -> None:
        digits = str(mantissa).zfill(scale + 1)
        number = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
        unit = UNITS[name]
        metric = {
            "duration": "rtt",
            "size": "bytes_acked",
            "rate": "delivery_rate",
            "segments": "cwnd",
            "ratio": "retransmit_ratio",
        }[unit.dimension]
        if unit.dimension == "ratio":
            result = check(POLICY.replace("  rank", f"  exclude {metric} < {number} {name}\n  rank"))
        else:
            result = check(POLICY.replace("client\n", f"client where {metric} >= {number} {name}\n"))
        exact = Fraction(mantissa, 10**scale) * unit.factor
        if result.policy is None:
            assert {found.code for found in result.diagnostics} <= {"T105", "T106"}
            assert exact.denominator != 1 or result.diagnostics[0].code == "T105"
        else:
            select = result.policy.selects[0]
            assert [condition.value for condition in (*select.where, *select.exclude)] == [exact]

    def test_every_metric_is_accepted_where_it_may_stand_and_nowhere_else(self) -> None:
        values = {"duration": "1ms", "size": "1KB", "rate": "1Mbps", "ratio": "1%", "segments": "1 segments"}
        for metric in METRICS.values():
            test = (
                metric.name if metric.dimension == "flag" else f"{metric.name} < {values[metric.dimension]}"
            )
            texts = {
                "measure": POLICY.replace("rtt by", f"{metric.name} by"),
                "where": POLICY.replace("client\n", f"client where {test}\n"),
                "exclude": POLICY.replace("  rank", f"  exclude {test}\n  rank"),
            }
            for place, text in texts.items():
                codes = [found.code for found in check(text).diagnostics]
                assert codes == ([] if place in metric.places else ["N103"]), (metric.name, place)


RULES = [rule for rules in (*BLOCKS.values(), OVERRIDE, TOP_LEVEL) for rule in rules.values()]
WORDS = sorted(
    {word for rule in RULES for form in rule.forms for word in form.split()}
    | {*METRICS, *UNITS, *BLOCKS, "slow", "#", "é"}
)
PIECES = [
    "{",
    "}",
    ",",
    "<",
    ">=",
    "/24",
    "192.0.2.0/24",
    "::/0",
    '"',
    '"1..."',
    "10",
    "0.5",
    "5m",
    "20%",
    "\n",
    "\r\n",
    "\t",
]
SALADS = st.lists(st.sampled_from(WORDS + PIECES), max_size=60).map(" ".join)


def assert_only_diagnostics(text: str) -> None:
    assert_sound(check(text), text)


class TestAnyText:
    @settings(deadline=None)
    @given(st.text(st.characters(), max_size=200))
    @example("\ud800 \x00\x1b")
    @example("1" * 5000 + "." + "2" * 5000)
    def test_random_text_gives_diagnostics(self, text: str) -> None:
        assert_only_diagnostics(text)

    @pytest.mark.parametrize(
        "path", ["", "/", "\x00", "\ud800", "x" * 5000, "fleet/hosts.yml/x", "edge.tide"]
    )
    def test_an_inventory_that_is_none_is_one_error(self, path: str) -> None:
        assert_only_diagnostics(POLICY.replace("fleet", path))
        assert [found.code for found in check(POLICY.replace("fleet", path)).diagnostics] == ["N108"]

    @settings(deadline=None)
    @given(SALADS)
    def test_words_in_any_order_give_diagnostics(self, text: str) -> None:
        assert_only_diagnostics(text)

    @given(st.data())
    @settings(max_examples=200, deadline=None)
    def test_a_damaged_policy_gives_diagnostics(self, data: st.DataObject) -> None:
        text = TEXT
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(text)))
            end = min(len(text), start + data.draw(st.integers(0, 30)))
            text = text[:start] + data.draw(st.one_of(st.just(""), SALADS, st.text(max_size=5))) + text[end:]
        assert_only_diagnostics(text)

    @settings(deadline=None)
    @given(st.integers(0, len(TEXT.splitlines()) - 1))
    def test_a_policy_without_one_line_has_few_errors(self, index: int) -> None:
        lines = TEXT.splitlines(keepends=True)
        result = check("".join(lines[:index] + lines[index + 1 :]))
        # Losing the header of a select takes its name from the rule and every expectation that uses it, all alike.
        assert len({found.message for found in result.diagnostics}) <= 2, render(result)


class TestReport:
    def test_json_has_the_place_in_characters_and_bytes(self) -> None:
        result = check(POLICY.replace("rank bottom 20% of pop", 'rank bottom 20 of pop # "é"'))
        [found] = result.diagnostics
        json = found.to_json(result.source)
        assert (json["code"], json["line"], json["column"], json["end_column"]) == ("T101", 7, 15, 17)
        assert POLICY.encode()[json["byte"] : json["end_byte"]] == b"20"  # type: ignore[misc]

    def test_colour_changes_nothing_but_the_colour(self) -> None:
        result = check(POLICY.replace("20%", "20"))
        assert re.sub(r"\x1b\[[0-9;]*m", "", render(result, color=True)) == render(result)
        assert "\x1b" in render(result, color=True)

    def test_what_would_steer_the_terminal_is_not_printed(self) -> None:
        assert "\x1b" not in render(check(POLICY.replace("fleet", "\x1b[2Jfleet")))

    def test_summary_counts_over_all_files(self) -> None:
        bad, good = check(POLICY.replace("20%", "20")), check(POLICY)
        assert summary([("a.tide", good.diagnostics)]) == "a.tide: no errors"
        assert (
            summary([("a.tide", bad.diagnostics), ("b.tide", bad.diagnostics)]) == "checked 2 files: 2 errors"
        )
