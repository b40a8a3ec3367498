"""Every code has a page in docs/errors, and what the page shows is so.

Run with TIDEGATE_WRITE_PAGES=1 to write the messages and the index as they are now; read the difference.
"""

import os
import re
from pathlib import Path

import pytest
from tidegate_dsl import CheckResult, check_text, read_limits, render
from tidegate_dsl.diagnostics import CODES
from tidegate_dsl.diagnostics.report import page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "errors"
WRITE = os.environ.get("TIDEGATE_WRITE_PAGES") == "1"
GROUPS = {
    "L": "Characters and words",
    "P": "Blocks and clauses",
    "N": "Names",
    "T": "Values",
    "C": "Contradictions",
    "X": "Tests",
    "W": "Warnings",
}


def written(code: str) -> str:
    return (ROOT / page(code)).read_text(encoding="utf-8")


def example(text: str, which: str) -> str:
    (found,) = re.findall(rf"^```tide {which}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


def check(text: str, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    """As `tidegate check` does in the repository; the examples stand where their page does."""
    monkeypatch.chdir(ROOT)
    limits = read_limits(Path("policies/limits.yaml"))
    return check_text(text, "policy.tide", limits=limits, directory=PAGES.relative_to(ROOT))


def index() -> str:
    parts = [
        "# What check can say\n",
        "Every diagnostic has a code that never changes its meaning, and a page with a wrong and a right example.",
        "`tidegate check --explain CODE` prints a page; `docs/check.md` is about the command. This index is",
        "generated from `tidegate_dsl/diagnostics/codes.py`.",
    ]
    for letter, title in GROUPS.items():
        rows = [
            f"| [{code}]({code}.md) | {meaning} |" for code, meaning in CODES.items() if code[0] == letter
        ]
        parts += ["", f"## {title}", "| code | stands for |", "|---|---|", *rows]
    return "\n".join(parts) + "\n"


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*CODES, "README"}
    assert {code[0] for code in CODES} == set(GROUPS)


@pytest.mark.parametrize("code", CODES)
def test_the_title_is_the_code_and_what_it_stands_for(code: str) -> None:
    assert written(code).splitlines()[0] == f"# {code}: {CODES[code]}"


@pytest.mark.parametrize("code", CODES)
def test_the_wrong_example_prints_this_and_nothing_else(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(code)
    result = check(example(text, "wrong"), monkeypatch)
    assert [found.code for found in result.diagnostics] == [code], render(result)

    shown = f"```text\n{render(result)}\n```"
    if WRITE:
        now = re.sub(r"^```text\n.*?^```$", lambda _: shown, text, flags=re.MULTILINE | re.DOTALL)
        (ROOT / page(code)).write_text(now, encoding="utf-8")
        text = now
    assert shown in text


@pytest.mark.parametrize("code", CODES)
def test_the_right_example_has_nothing_to_say(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = check(example(written(code), "right"), monkeypatch)
    assert not result.diagnostics, render(result)


@pytest.mark.parametrize("code", [code for code in CODES if code.startswith("W")])
def test_a_warning_says_how_to_silence_it(code: str) -> None:
    assert f"# allow {code}: " in written(code)


def test_the_index_names_every_page() -> None:
    path = PAGES / "README.md"
    if WRITE:
        path.write_text(index(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == index()
