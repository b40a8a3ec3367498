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


def say_span(microseconds: int) -> str:
    """A span of time in days, hours and minutes: `2h`, `1d 6h`, `40m`."""
    minutes = -(-microseconds // 60_000_000)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count) or "0m"


def percent(part: int, whole: int) -> str:
    """A share as a percentage with one decimal; nothing of nothing is 0.0%."""
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"
