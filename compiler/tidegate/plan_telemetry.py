"""What a plan says of the telemetry of each POP: how far it is complete, whether it lags, what came late."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.late import ClosedWindow
from tidegate.times import format_time
from tidegate.watermarks import Watermarks

Document = dict[str, Any]


def state_of_telemetry(marks: Watermarks, late: Mapping[str, Sequence[ClosedWindow]]) -> dict[str, Document]:
    """`telemetry` of a plan's POPs, by POP, as schemas/plan.schema.json has it.

    Args:
        marks: the fleet's.
        late: by select, the windows of its lookback that samples came late for.
    """
    return {pop: _of_pop(marks, late, pop) for pop in marks.pops}


def late_samples(telemetry: Document) -> int:
    """Samples that came late, in all windows; of several selects that one that counts most."""
    counted: dict[str, int] = {}
    for entry in telemetry["late"]:
        counted[entry["select"]] = counted.get(entry["select"], 0) + entry["samples"]
    return max(counted.values(), default=0)


def warnings(pops: Mapping[str, Document]) -> list[str]:
    """What a person must know of the telemetry that a plan was made from, a line for each POP and matter."""
    found = []
    for pop, body in pops.items():
        telemetry = body.get("telemetry")
        if telemetry and telemetry["lagging"]:
            found.append(f"{pop} keeps what it has: {telemetry['lagging']}")
        if telemetry and (samples := late_samples(telemetry)):
            first = min(entry["window_start"] for entry in telemetry["late"])
            found.append(
                f"{pop}: {samples} samples came after their windows were closed and are not used, the first of"
                f" {first}; `tidegate windows reopen` has them closed again"
            )
    return found


def _of_pop(marks: Watermarks, late: Mapping[str, Sequence[ClosedWindow]], pop: str) -> Document:
    mark = marks.pops[pop]
    return {
        "watermark": format_time(mark) if mark else None,
        "lag_s": marks.lag_s(pop),
        "lagging": marks.lagging.get(pop),
        "late": [
            {"select": name, "window_start": format_time(window.start), "samples": window.late}
            for name, windows in late.items()
            for window in windows
            if window.pop == pop
        ],
    }
