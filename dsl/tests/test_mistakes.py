"""Each file in mistakes/ has the errors and warnings that the text beside it shows, and no other."""

import re
from pathlib import Path

import pytest
from tidegate_dsl import check_file, render
from tidegate_dsl.diagnostics import CODES

HERE = Path(__file__).parent
MISTAKES = sorted((HERE / "mistakes").glob("*.tide"))


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_a_mistake_reads_as_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    result = check_file(path.relative_to(HERE), limits=Path("limits.yaml"))

    shown = render(result) + "\n"
    expected, actual = path.with_suffix(".txt"), path.with_suffix(".actual")
    if not expected.exists() or expected.read_text(encoding="utf-8") != shown:
        actual.write_text(shown, encoding="utf-8")
        pytest.fail(
            f"not as {expected.name} shows; if {actual.name} is right, rename it to {expected.name}\n{shown}"
        )
    actual.unlink(missing_ok=True)
    assert (result.policy is None) == ("error[" in shown)


def test_every_code_has_a_file_that_makes_it() -> None:
    texts = [path.with_suffix(".txt").read_text(encoding="utf-8") for path in MISTAKES]
    made = {code for text in texts for code in re.findall(r"^(?:error|warning)\[(\w+)\]", text, re.MULTILINE)}
    assert made == set(CODES)


def test_every_mistake_has_a_way_out() -> None:
    """But for a test that fails: whether it or the policy is wrong, only its author knows."""
    shown = [each for path in MISTAKES for each in path.with_suffix(".txt").read_text("utf-8").split("\n\n")]
    assert [each for each in shown if "= help: " not in each and "[X101]" not in each] == []


def test_no_text_is_left_without_its_policy() -> None:
    texts = {path.stem for path in (HERE / "mistakes").glob("*.txt")}
    assert texts == {path.stem for path in MISTAKES}
