"""Values of metrics in words that people read; whoever compares takes the whole numbers."""

from typing import Final

from tidegate_dsl.vocabulary import METRICS

_STEPS: Final[dict[str, tuple[tuple[int, str, int], ...]]] = {  # from so much on: unit, decimals
    "rate": ((1_000_000_000, "Gbps", 2), (1_000_000, "Mbps", 2), (1_000, "kbps", 1), (1, "bps", 0)),
    "duration": ((1_000_000, "s", 1), (1_000, "ms", 1), (1, "us", 0)),
    "size": ((1_000_000, "MB", 1), (1_000, "KB", 1), (1, "B", 0)),
    "ratio": ((10_000, "%", 2),),
    "segments": ((1, "segments", 0),),
    "flag": ((1, "", 0),),
}


def say(metric: str, value: int | None) -> str:
    """A metric's value, in its base unit, in words; None is `not measured`."""
    if value is None:
        return f"{metric} was not measured"
    steps = _STEPS[METRICS[metric].dimension]
    factor, unit, decimals = next((step for step in steps if value >= step[0]), steps[-1])
    number = f"{value / factor:.{decimals}f}"
    return f"{number}%" if unit == "%" else f"{number} {unit}".rstrip()


def percent(part: int, whole: int) -> str:
    """A share as a percentage with one decimal; nothing of nothing is 0.0%."""
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"
