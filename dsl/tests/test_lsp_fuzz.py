"""Whatever is typed, the server answers; and it has the text that the editor has."""

import random
from pathlib import Path

from editor_client import Json, editor
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tidegate_dsl import check_text, read_limits
from tidegate_dsl.editor.text import Position, Text

HERE = Path(__file__).parent
LIMITS = HERE / "limits.yaml"
EXAMPLE = (HERE.parent / "examples" / "edge.tide").read_text(encoding="utf-8")
SCRAPS = [
    "{",
    "}",
    '"',
    "#",
    "\n",
    "\r",
    "\r\n",
    " ",
    "é",
    "😀",
    "\u2028",
    "\x00",
    "over ",
    "6h",
    "select x {\n",
    "%",
]
PLACED = ("completion", "hover", "definition", "prepareRename")
WHOLE = ("documentSymbol", "foldingRange")


def test_typing_and_tearing_at_random_never_ends_the_server(tmp_path: Path) -> None:
    dice = random.Random(20261121)
    path = tmp_path / "edge.tide"
    path_text = EXAMPLE.replace("../../inventory", str(HERE / "fleet"))
    limits = read_limits(LIMITS)
    with editor("--limits", str(LIMITS)) as made:
        made.open(path, path_text)
        text = Text(path_text)
        for _ in range(250):
            change, text = random_change(dice, text)
            found = made.change(path, change)
            expected = check_text(text.text, str(path), limits=limits)
            assert [each["code"] for each in found] == [each.code for each in expected.diagnostics]
            line, character = text.position(dice.randrange(len(text.text) + 1))
            made.at(dice.choice(PLACED), path, line, character + dice.randrange(2))
            made.about(dice.choice(WHOLE), path)
            if found:
                made.about("codeAction", path, range=found[0]["range"], context={"diagnostics": []})
        assert made.quit() == 0


def random_change(dice: random.Random, text: Text) -> tuple[Json, Text]:
    """A small cut, and a scrap in its place; and what the editor then has."""
    first = dice.randrange(len(text.text) + 1)
    last = min(len(text.text), first + dice.choice([0, 0, 0, 1, 5, 40]))
    start, end = text.position(first), text.position(last)
    scrap = dice.choice(SCRAPS)
    ends = {
        side: {"line": at.line, "character": at.character} for side, at in (("start", start), ("end", end))
    }
    return {"range": ends, "text": scrap}, text.replaced(start, end, scrap)


@given(
    st.text(st.sampled_from("ab \r\né😀\u2028\ud800"), max_size=30),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
@settings(max_examples=300, deadline=None)
def test_an_offset_comes_back_from_its_position(text: str, encoding: str) -> None:
    whole = Text(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n" or offset == 0:
            assert whole.offset(whole.position(offset)) == offset


@settings(deadline=None)
@given(st.text(max_size=30), st.integers(0, 9), st.integers(0, 40))
@example("0\U00010000", 0, 2)  # within a pair of surrogates
def test_a_position_beyond_the_text_is_its_end(text: str, line: int, character: int) -> None:
    whole = Text(text)
    offset = whole.offset(Position(line, character))
    assert 0 <= offset <= len(text)
    assert whole.position(offset) <= Position(line, character)


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\n"), max_size=20), st.text(st.sampled_from("ab\n"), max_size=20))
def test_a_change_of_lines_makes_the_new_text(old: str, new: str) -> None:
    change = Text(old).line_change(new)
    if change is None:
        assert old == new
    else:
        (start, end), text = change
        assert Text(old).replaced(start, end, text).text == new
