"""From a change of one character to its diagnostics, in a file of 2,000 lines, as an editor sees it."""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

from editor_client import Editor, Json, editor  # noqa: E402 - the client stands with the tests

from policies import large_policy  # noqa: E402

LINES: Final = 2_000
KEYSTROKES: Final = 200
LINES_ADDED: Final = 20
_TYPED: Final = "0123456789"


def measure() -> dict[str, dict[str, object]]:
    """`lsp.keystroke_ms`: the 95th percentile over 200 keystrokes; beside it a line added above all blocks.

    A letter leaves the other blocks where they stand, and the server does not read them again; a line moves them all.
    """
    text = large_policy(LINES)
    lines = text.split("\n")
    # All over the file: a digit behind a `hold` is a mistake, and without it the policy is right again.
    places = [number for number, line in enumerate(lines) if line.strip().startswith("hold ")]
    took: list[float] = []
    moved: list[float] = []
    with tempfile.TemporaryDirectory() as directory, editor() as typist:
        path = Path(directory) / "large.tide"
        assert typist.open(path, text) == [], "the policy of the benchmark is valid"
        for stroke in range(KEYSTROKES):
            line = places[stroke // 2 % len(places)]
            at = {"line": line, "character": len(lines[line])}
            if stroke % 2:  # take the character away again
                change = {"range": {"start": at, "end": {**at, "character": at["character"] + 1}}, "text": ""}
            else:
                change = {"range": {"start": at, "end": at}, "text": _TYPED[stroke % len(_TYPED)]}
            found = _timed(typist, path, change, took)
            assert bool(found) != bool(stroke % 2), "a mistake is shown while it stands, and no longer"
        above, below = {"line": 2, "character": 0}, {"line": 3, "character": 0}
        for stroke in range(LINES_ADDED):
            change = {
                "range": {"start": above, "end": below if stroke % 2 else above},
                "text": "\n" * (1 - stroke % 2),
            }
            assert _timed(typist, path, change, moved) == []
    return {
        "lsp.keystroke_ms": {
            "value": round(statistics.quantiles(took, n=20)[-1], 1),
            "unit": "ms",
            "against": f"{LINES} lines, p95 of {KEYSTROKES} keystrokes; median {statistics.median(took):.1f} ms,"
            f" slowest {max(took):.1f} ms; a line added above all blocks: median {statistics.median(moved):.1f} ms",
        }
    }


def _timed(typist: Editor, path: Path, change: Json, took: list[float]) -> Json:
    """The diagnostics behind a change, and how many milliseconds they took."""
    before = time.perf_counter()
    found = typist.change(path, change)
    took.append((time.perf_counter() - before) * 1_000)
    return found


if __name__ == "__main__":
    print(measure())
