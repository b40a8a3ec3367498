"""A check that remembers the text before says what a check of the text alone says, whatever was typed in between."""

import os
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_dsl import Memory, check_text, read_fleet, read_limits
from tidegate_dsl.diagnostics import Findings, Source
from tidegate_dsl.fleet import Limits, inventory_file
from tidegate_dsl.lsp.reread import Reread
from tidegate_dsl.model import Fleet
from tidegate_dsl.syntax import parse_policy
from tidegate_dsl.syntax.sections import Sections, cut

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
NARROW = replace(LIMITS, prefixes_per_pop_max=replace(LIMITS.prefixes_per_pop_max, value=10))
FLEET = read_fleet(HERE / "fleet")
SMALL = Fleet(FLEET.pops[:2], FLEET.origins)
EXAMPLES = [
    re.sub(r'inventory ".*"', 'inventory "fleet"', file.read_text(encoding="utf-8"))
    for file in sorted((HERE.parent / "examples").glob("*.tide"))
]
PARAGRAPHS = sorted({part for text in EXAMPLES for part in text.split("\n\n") if "edition" not in part})
SCRAPS = (
    *(
        "{",
        "}",
        "}\n",
        '"',
        "#",
        "# ",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "\u00a0",
        "\ufeff",
        "é",
        "\u2028",
    ),
    *("1", "%", ",", " or", "x", "select ", "test ", "apply late {\n", "override fra1 {", "select x\n{\n"),
    *(
        "edition 2026.1\n",
        "hold 3h\n",
        "}\n}\n",
        "guard",
        "# allow W109: meant\n",
        "  initcwnd 20 segments\n",
    ),
    *('test "again" {\n', "} select twice {", "to slow_clients\n", "limit 50 prefixes per pop\n"),
)


def typed(text: str, dice: Random) -> str:
    """Letters typed, or torn away."""
    place = dice.randrange(len(text) + 1)
    if dice.random() < 0.7:
        return text[:place] + dice.choice(SCRAPS) + text[place:]
    return text[:place] + text[place + dice.choice((1, 1, 2, 5, 60)) :]


def moved(text: str, dice: Random) -> str:
    """A word, a line or a paragraph taken from its place, or copied, or written over another one."""
    between = dice.choice((" ", "\n", "\n\n"))
    pieces = text.split(between)
    place = dice.randrange(len(pieces))
    match dice.randrange(4):
        case 0:
            pieces[place] = dice.choice(pieces)
        case 1:
            pieces.insert(dice.randrange(len(pieces)), pieces.pop(place))
        case 2:
            del pieces[place : place + dice.choice((1, 1, 3))]
        case _:
            pieces.insert(place, dice.choice((*PARAGRAPHS, *pieces)))
    return between.join(pieces)


class Desk:
    """A policy that is typed; each text's check and tree are held against those of the text alone."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._sections: Sections = {}

    def put(self, text: str, *, limits: Limits = LIMITS, fleet: Fleet = FLEET) -> None:
        path = str(HERE / "x.tide")
        result = check_text(text, path, limits=limits, fleets=lambda _: fleet, memory=self._memory)
        assert result == check_text(text, path, limits=limits, fleets=lambda _: fleet)

        self._sections = cut(text, self._sections)
        found, alone = Findings(path), Findings(path)
        tree = parse_policy(Source(path, text), found, self._sections)
        assert tree == parse_policy(Source(path, text), alone)
        assert found == alone


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_after_any_edits_the_result_is_that_of_the_text_alone(seed: int) -> None:
    dice, desk = Random(seed), Desk()
    text = dice.choice(EXAMPLES)
    texts = [text]
    for _ in range(20):
        changed = dice.random()
        if changed < 0.2:  # undo
            text = dice.choice(texts[-3:])
        elif changed < 0.9:
            text = dice.choice((typed, moved))(text, dice)
        texts.append(text)
        limits, fleet = (NARROW if dice.random() < 0.1 else LIMITS), (SMALL if dice.random() < 0.1 else FLEET)
        desk.put(text, limits=limits, fleet=fleet)


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_is_typed_and_taken_back_leaves_nothing_behind(text: str) -> None:
    dice, desk = Random(len(text)), Desk()
    for _ in range(50):
        place = dice.randrange(len(text) + 1)
        desk.put(text[:place] + dice.choice(SCRAPS) + text[place:])
        desk.put(text)


def test_an_inventory_that_is_saved_as_it_was_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_bytes((HERE / "fleet" / "hosts.yml").read_bytes())
    read = Reread(read_fleet, inventory_file)
    before = read(tmp_path)
    os.utime(file, ns=(0, 0))
    assert read(tmp_path) is before
    file.write_text(file.read_text().replace("fra2", "fra9"))
    assert "fra9" in {pop.name for pop in read(tmp_path).pops}


def test_sections_are_the_text() -> None:
    for text in ("", "\n", "select", "\ufeffselect a {\n}\n", *EXAMPLES, f"\n{EXAMPLES[0]}"):
        sections = cut(text, {}).values()
        assert "\n".join(each.text for each in sections) == text
        for each in sections:
            before = text.split("\n")[: each.number - 1]
            assert text.startswith("\n".join([*before, each.text]))


def test_a_letter_leaves_the_other_blocks_as_they_are() -> None:
    text = EXAMPLES[0]
    before = cut(text, {})
    parse_policy(Source("x.tide", text), Findings("x.tide"), before)
    assert (
        sum(section.block is not None for section in before.values()) == len(before) - 1
    )  # the head is none
    behind = cut(text.replace("2h", "3h", 1), before)
    kept = [section for place, section in before.items() if behind.get(place) is section]
    assert len(kept) == len(before) - 1
