"""The specification names every word of the language, and its rows say what the checker does."""

import re
from pathlib import Path

import pytest
from tidegate_dsl.syntax import GRAMMARS, HEAD_GRAMMAR, OVERRIDE_GRAMMAR
from tidegate_dsl.syntax.lexer import MAX_DIGITS
from tidegate_dsl.vocabulary import (
    ABORT_RANGE,
    BLOCKS,
    EDITIONS,
    EVERY_RANGE,
    EXPIRE_RANGE,
    HOLD_RANGE,
    MAX_WINDOWS,
    METRICS,
    OVERRIDE,
    PERCENTILE_RANGE,
    PREFIXES_PER_ARM_RANGE,
    REASONS,
    RELEASE_RANGE,
    SAMPLES_RANGE,
    STEP_RANGE,
    SWITCHBACK_RANGE,
    TOP_LEVEL,
    TRAFFIC_CLASSES,
    TRANSFER_SIZE_RANGE,
    UNITS,
    YEARS,
    Dimension,
    Range,
    spell,
)

SPEC = (Path(__file__).parents[1] / "SPEC.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## \d+\. (\w+).*?\n(.*?)(?=^## |\Z)", SPEC, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("block", BLOCKS)
def test_every_clause_has_a_row_in_its_section_and_no_row_is_without_one(block: str) -> None:
    rows = re.findall(r"^\| `(.*?)` \|", SECTIONS[block].replace("\\|", "|"), re.MULTILINE)
    forms = [form for rule in BLOCKS[block].values() for form in rule.forms]
    assert [row for row in rows if row not in METRICS] == forms


@pytest.mark.parametrize("block", BLOCKS)
def test_needed_clauses_come_first_as_the_section_says(block: str) -> None:
    needed = [rule.required for rule in BLOCKS[block].values()]
    said, count = {
        "select": ("the first four clauses are needed", 4),
        "apply": ("the first three clauses are needed", 3),
        "learn": ("every clause is needed but `set initrwnd` and `hold_out`", 6),
        "initcwnd": ("every clause is needed", 3),
        "guard": ("the first clause is needed", 1),
        "experiment": ("the first clause is needed", 1),
        "test": ("holds one `given` and at least one `expect`", 2),
    }[block]
    assert said in " ".join(SECTIONS[block].split())
    assert needed == [True] * count + [False] * (len(needed) - count)


def test_every_metric_has_its_type_and_places() -> None:
    rows = {
        name: (kind, set(places.split(", ")))
        for name, kind, places in re.findall(
            r"^\| `(\w+)` \| (\w+) \| ([\w, ]+) \|", SECTIONS["select"], re.MULTILINE
        )
    }
    assert rows == {metric.name: (metric.dimension, set(metric.places)) for metric in METRICS.values()}


def test_every_unit_stands_with_its_type() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.*?) \|", SECTIONS["Types"], re.MULTILINE))
    for unit in UNITS.values():
        assert f"`{unit.name}`" in rows[unit.dimension]


@pytest.mark.parametrize(
    ("section", "bounds", "dimension"),
    [
        ("select", STEP_RANGE, "duration"),
        ("select", HOLD_RANGE, "duration"),
        ("apply", TRANSFER_SIZE_RANGE, "size"),
        ("learn", EVERY_RANGE, "duration"),
        ("learn", EXPIRE_RANGE, "duration"),
        ("guard", RELEASE_RANGE, "duration"),
        ("guard", ABORT_RANGE, "ratio"),
        ("experiment", SWITCHBACK_RANGE, "duration"),
    ],
)
def test_a_range_with_a_unit_is_as_the_section_says(
    section: str, bounds: Range, dimension: Dimension
) -> None:
    low, high = (
        re.sub(r"(\d)([a-z])", r"\1 \2", spell(value, dimension)) for value in (bounds.low, bounds.high)
    )
    text = SECTIONS[section].replace(",000%", "000%")
    assert f"{low} to {high}" in text or f"{low}, {high}" in text


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("select", f"{SAMPLES_RANGE.low} to {SAMPLES_RANGE.high:,}"),
        ("guard", f"{PREFIXES_PER_ARM_RANGE.low} to {PREFIXES_PER_ARM_RANGE.high:,}"),
        ("guard", f"`p{PERCENTILE_RANGE.low}` to `p{PERCENTILE_RANGE.high}`"),
        ("Text", f"{YEARS.low} to {YEARS.high}"),
    ],
)
def test_a_range_is_as_the_section_says(section: str, said: str) -> None:
    assert said in SECTIONS[section]


@pytest.mark.parametrize(
    "word",
    [
        *(f'"{word}"' for word in TRAFFIC_CLASSES),
        *(f"`{word}`" for word in REASONS),
        *(form for rules in (TOP_LEVEL, OVERRIDE) for rule in rules.values() for form in rule.forms),
        *(f"edition {edition}" for edition in EDITIONS),
        f"1 to {MAX_WINDOWS} windows",
        f"at most {MAX_DIGITS} digits",
    ],
)
def test_the_specification_names(word: str) -> None:
    assert word in SPEC


def test_every_clause_has_a_grammar() -> None:
    assert {block: set(rules) - {"override"} for block, rules in BLOCKS.items()} == {
        block: set(grammars) for block, grammars in GRAMMARS.items()
    }
    assert (set(OVERRIDE), set(TOP_LEVEL)) == (set(OVERRIDE_GRAMMAR), set(HEAD_GRAMMAR))
