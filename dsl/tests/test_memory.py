"""A check that remembers the text before says what a check of the text alone says, whatever was typed in between."""

import os
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_dsl import Memory, check_text, read_fleet, read_limits
from tidegate_dsl.diagnostics import Findings, Source, Span
from tidegate_dsl.fleet import Limits, inventory_file
from tidegate_dsl.lsp.reread import Reread
from tidegate_dsl.model import Fleet
from tidegate_dsl.syntax import lex, parse_policy, tree
from tidegate_dsl.syntax.parse import parse_tokens
from tidegate_dsl.syntax.sections import Section, cut

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


def lined(text: str, dice: Random) -> str:
    """Lines added above a block, or taken away there: what stands below moves, and stays as it is."""
    starts = [0, *(match.end() for match in re.finditer(r"\n\n", text))]
    place = dice.choice(starts)
    if dice.random() < 0.6:
        return (
            text[:place]
            + dice.choice(("\n", "\n\n\n", "# a word\n", "# allow W109: meant\n", "\r\n"))
            + text[place:]
        )
    return text[:place] + text[place:].partition("\n")[2]


def in_the_file(node: object, above: int = 0) -> object:
    """A tree whose every line counts from the file's first."""
    if isinstance(node, Span):
        return node.below(above)
    if isinstance(node, tree.Block):
        node, above = replace(node, above=0), node.above
    if isinstance(node, tuple):
        return [in_the_file(each, above) for each in node]
    if is_dataclass(node):
        return type(node).__name__, [in_the_file(getattr(node, each.name), above) for each in fields(node)]
    return node


class Desk:
    """A policy that is typed; each text's check and tree are held against those of the text alone.

    The tree is held against that of all tokens one after the other as well, which knows of no sections.
    """

    def __init__(self) -> None:
        self._memory = Memory()
        self._read = Memory()

    def put(self, text: str, *, limits: Limits = LIMITS, fleet: Fleet = FLEET) -> None:
        path = str(HERE / "x.tide")
        result = check_text(text, path, limits=limits, fleets=lambda _: fleet, memory=self._memory)
        assert result == check_text(text, path, limits=limits, fleets=lambda _: fleet)

        source = Source(path, text)
        found, whole = Findings(path), Findings(path)
        file = parse_policy(source, found, self._read)
        assert in_the_file(file) == in_the_file(parse_tokens(lex(source, whole), whole))
        assert {*found.items} == {*whole.items}


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
            text = dice.choice((typed, moved, lined))(text, dice)
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


def test_pieces_are_the_text() -> None:
    for text in ("", "\n", "select", "\ufeffselect a {\n}\n", *EXAMPLES, f"\n{EXAMPLES[0]}"):
        pieces = cut(text)
        assert "\n".join(each.text for each in pieces) == text
        for each in pieces:
            assert text.startswith("\n".join([*text.split("\n")[: each.above], each.text]))


@pytest.mark.parametrize(
    ("change", "read_again"),
    [
        pytest.param(lambda text: text.replace("2h", "3h", 1), 1, id="a letter"),
        pytest.param(lambda text: f"\n{text}", 1, id="a line above all blocks"),
        pytest.param(lambda text: text.partition("\n")[2], 1, id="the first line taken away"),
        pytest.param(
            lambda text: text.replace("\n\ntest", "\n\n\n# more\ntest", 1), 1, id="lines between two"
        ),
    ],
)
def test_a_change_leaves_the_other_blocks_as_they_are(change: Callable[[str], str], read_again: int) -> None:
    memory, text = Memory(), EXAMPLES[0]
    parse_policy(Source("x.tide", text), Findings("x.tide"), memory)
    asked: list[str] = []

    def read(piece: str) -> Section | None:
        asked.append(piece)
        return None

    pieces = [piece.text for piece in cut(change(text))]
    sections = memory.sections(pieces, read)
    assert len(asked) == read_again
    assert sum(section is not None for section in sections) == len(pieces) - len(
        {0, *map(pieces.index, asked)}
    )
