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
KEYSTROKES: Final = 400
_TYPED: Final = "0123456789"


def measure() -> dict[str, dict[str, object]]:
    """`lsp.keystroke_ms`: the 95th percentile over 400 keystrokes.

    Half of them are within blocks all over the file: a digit behind a `hold` is a mistake, and without it the policy
    is right again. The others are Enter and Backspace above all blocks, which move every line of the file.
    """
    text = large_policy(LINES)
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if line.strip().startswith("hold ")]
    within: list[float] = []
    above: list[float] = []
    with tempfile.TemporaryDirectory() as directory, editor() as typist:
        path = Path(directory) / "large.tide"
        assert typist.open(path, text) == [], "the policy of the benchmark is valid"
        for stroke in range(KEYSTROKES // 4):
            line = places[stroke % len(places)]
            at = {"line": line, "character": len(lines[line])}
            digit = _TYPED[stroke % len(_TYPED)]
            found = _timed(typist, path, _change(at, at, digit), within)
            assert found, "a mistake is shown while it stands"
            found = _timed(typist, path, _change(at, {**at, "character": at["character"] + 1}, ""), within)
            assert found == [], "and no longer"
            top, below = {"line": 2, "character": 0}, {"line": 3, "character": 0}
            assert _timed(typist, path, _change(top, top, "\n"), above) == []
            assert _timed(typist, path, _change(top, below, ""), above) == []
    took = within + above
    return {
        "lsp.keystroke_ms": {
            "value": round(statistics.quantiles(took, n=20)[-1], 1),
            "unit": "ms",
            "against": f"{LINES} lines, p95 of {KEYSTROKES} keystrokes; median within a block"
            f" {statistics.median(within):.1f} ms, Enter and Backspace above all blocks"
            f" {statistics.median(above):.1f} ms, slowest {max(took):.1f} ms",
        }
    }


def _change(start: Json, end: Json, text: str) -> Json:
    return {"range": {"start": start, "end": end}, "text": text}


def _timed(typist: Editor, path: Path, change: Json, took: list[float]) -> Json:
    """The diagnostics behind a change, and how many milliseconds they took."""
    before = time.perf_counter()
    found = typist.change(path, change)
    took.append((time.perf_counter() - before) * 1_000)
    return found


if __name__ == "__main__":
    print(measure())
