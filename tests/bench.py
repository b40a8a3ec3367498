"""`make bench`: every figure is a ratio against a floor or a peer, or a duration of a stated size, in one run.

Writes {"name": {"value", "unit", "against"}} and prints it; a benchmark that cannot run here says why.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / room / "bench") for room in ("collectors", "compiler", "dsl")] + [
    str(ROOT / "lab")
]

import agent_memory  # noqa: E402 - the benches stand in their rooms
import check_time  # noqa: E402
import collector_cost  # noqa: E402
import full_table  # noqa: E402
import ingest_rate  # noqa: E402
import kafka_rate  # noqa: E402
import keystroke  # noqa: E402
import riptide_cost  # noqa: E402
import routes_cost  # noqa: E402
import select_grid  # noqa: E402
import steer_cost  # noqa: E402

Figures = dict[str, dict[str, object]]
BENCHMARKS: tuple[Callable[[], Figures], ...] = (
    check_time.measure,
    keystroke.measure,
    collector_cost.measure,
    ingest_rate.measure,
    kafka_rate.measure,
    select_grid.measure,
    steer_cost.measure,
    routes_cost.measure,
    full_table.measure,
    riptide_cost.measure,
    agent_memory.measure,
)


def main(out: Path) -> None:
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as tempfile.tempdir:
        for benchmark in BENCHMARKS:
            print(f"running {benchmark.__module__}", file=sys.stderr, flush=True)
            figures |= benchmark()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    for name, figure in sorted(figures.items()):
        print(f"{name:36} {figure['value']:>10} {figure['unit']:<18} against {figure['against']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
