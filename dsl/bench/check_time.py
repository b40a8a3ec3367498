"""`tidegate check` of a policy of 5,000 lines, the process's start included."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parent)]

from policies import large_policy  # noqa: E402 - it stands beside this file

LINES: Final = 5_000
RUNS: Final = 7


def measure() -> dict[str, dict[str, object]]:
    """`check.seconds_5000_lines`: the median of seven runs of the command."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory) / "large.tide"
        policy.write_text(large_policy(LINES), encoding="utf-8")
        command = [str(Path(sys.executable).with_name("tidegate")), "check", str(policy)]
        for _ in range(RUNS):
            before = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            took.append(time.perf_counter() - before)
    return {
        "check.seconds_5000_lines": {
            "value": round(sorted(took)[RUNS // 2], 3),
            "unit": "s",
            "against": f"{LINES} lines, median of {RUNS} runs, the process's start included",
        }
    }


if __name__ == "__main__":
    print(measure())
