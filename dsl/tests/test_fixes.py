"""Fixes do what they say: the mistake is gone behind one, and no other comes in its place."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tidegate_dsl import CheckResult, check_text, read_limits
from tidegate_dsl.diagnostics import Diagnostic
from tidegate_dsl.fixes import applicable, apply_fixes

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
MISTAKES = sorted((HERE / "mistakes").glob("*.tide"))
EXAMPLE = (HERE.parent / "examples" / "edge.tide").read_text(encoding="utf-8")


def check(text: str) -> CheckResult:
    return check_text(text, "x.tide", limits=LIMITS, directory=HERE / "mistakes")


def told(diagnostics: tuple[Diagnostic, ...]) -> Counter[str]:
    """Which mistakes, without their places: those below a removed line move."""
    return Counter(found.code for found in diagnostics)


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
    before, after = told(check(text).diagnostics), told(alone(text, diagnostic).diagnostics)

    assert after == before - Counter([diagnostic.code])


@pytest.mark.parametrize(("text", "diagnostic"), FIXES)
def test_edits_of_one_fix_do_not_overlap(text: str, diagnostic: Diagnostic) -> None:
    assert diagnostic.fix
    spans = sorted(edit.span for edit in diagnostic.fix.edits)
    assert all(one.end <= other.start for one, other in zip(spans, spans[1:], strict=False))
    assert all(0 <= span.start <= span.end <= len(text.encode()) for span in spans)
