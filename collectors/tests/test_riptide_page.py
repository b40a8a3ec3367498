"""What docs/riptide.md shows is what happens."""

import re
from pathlib import Path

from tidegate_edge.riptide.filter import MAX_PREFIXES
from tidegate_edge.riptide.observe import MAX_CONNECTIONS
from tidegate_edge.riptide.state import REASONS
from tidegate_edge.riptide.windows import MAX_DESTINATIONS

PAGE = (Path(__file__).parents[2] / "docs/riptide.md").read_text()


def test_the_example_runs(capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    exec(example, {})  # noqa: S102 - the page's own text
    shown = capsys.readouterr().out
    assert shown.startswith("{} {'by': 'host', 'destinations': []")


def test_the_limits_and_the_reasons_are_those_of_the_code():
    assert f"More than {MAX_PREFIXES} prefixes" in PAGE
    assert f"At most {MAX_CONNECTIONS:,} connections" in PAGE
    assert f"At most {MAX_DESTINATIONS:,} destinations" in PAGE


def test_the_reasons_are_those_of_the_code_in_their_order():
    assert tuple(re.findall(r"^   \| `(\w+)` \|", PAGE, re.MULTILINE)) == REASONS
