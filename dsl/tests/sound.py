"""What holds of every result of a check, whatever the text."""

from tidegate_dsl import CheckResult, render
from tidegate_dsl.diagnostics import CODES


def assert_sound(result: CheckResult, text: str) -> None:
    """Every diagnostic has a known code, lies in the text, can be printed; a policy comes just without errors."""
    size = len(text.encode("utf-8", "surrogatepass"))
    lines = text.split("\n")
    for found in result.diagnostics:
        span = found.span
        assert found.code in CODES
        assert (found.severity == "warning") == found.code.startswith("W")
        start, end = result.source.extent(span)
        assert 0 <= start <= end <= size
        assert 1 <= span.line <= len(lines)
        assert 1 <= span.column <= span.end_column <= len(lines[span.line - 1]) + 1
        before = "\n".join([*lines[: span.line - 1], lines[span.line - 1][: span.column - 1]])
        assert len(before.encode("utf-8", "surrogatepass")) == start
        for edit in found.fix.edits if found.fix else ():
            start, end = result.source.extent(edit.span)
            assert 0 <= start <= end <= size
    assert (result.policy is None) == any(found.severity == "error" for found in result.diagnostics)
    shown = render(result).encode("utf-8")
    assert shown.count(b"error[") + shown.count(b"warning[") >= len(result.diagnostics)
