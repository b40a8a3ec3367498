"""Membership over time as text: a mark a window, wrapped, with the time of day under it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

_TICKS_S: Final = (300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
_BARS: Final = "▁▂▃▄▅▆▇█"
_LABEL: Final = 7  # characters of `06:00`, or `11-20` where a day begins, and room between two


def wrapped(marks: str, width: int) -> Iterator[str]:
    """The marks in lines of at most `width`; at least one line."""
    for start in range(0, max(len(marks), 1), max(width, 1)):
        yield marks[start : start + max(width, 1)]


def with_hours(marks: str, start: datetime, step_us: int, width: int) -> Iterator[str]:
    """The marks in lines of at most `width`, under each the times (UTC) at which its windows start.

    Args:
        marks: one character a window, oldest first.
        start: of the oldest window.
        step_us: a window's length.
        width: of a line; lines hold whole ticks, so that hours stand under each other.
    """
    step_s = step_us // 1_000_000
    tick_s = next(
        (tick for tick in _TICKS_S if tick % step_s == 0 and tick >= _LABEL * step_s), _LABEL * step_s
    )
    per_tick = tick_s // step_s
    per_line = max(width // per_tick, 1) * per_tick if width >= per_tick else max(width, _LABEL)
    for number, line in enumerate(wrapped(marks, per_line)):
        first = start + timedelta(seconds=number * per_line * step_s)
        yield line
        yield _ruler(len(line), first, step_s, tick_s)


def sparkline(marks: str, values: Sequence[tuple[int, int]]) -> str:
    """A bar in the place of each mark of an observed window: its value against its threshold.

    Args:
        marks: one character a window, `.` where it was not observed.
        values: (value, threshold) of the observed windows, in their order.
    """
    known = iter(values)
    return "".join("." if mark == "." else _bar(*next(known)) for mark in marks)


def _bar(value: int, threshold: int) -> str:
    """Eighths of twice the threshold, so that the half block stands for the threshold itself."""
    height = value * 4 // threshold if threshold else len(_BARS)
    return _BARS[min(max(height, 1), len(_BARS)) - 1]


def _ruler(length: int, first: datetime, step_s: int, tick_s: int) -> str:
    ruler = ""
    for index in range(length):
        at = int(first.timestamp()) + index * step_s
        if at % tick_s == 0 and len(ruler) <= index:
            ruler = f"{ruler:<{index}}{_label(datetime.fromtimestamp(at, UTC))}"
    return ruler or (_label(first) if length else "")  # a line without an hour says when it starts


def _label(moment: datetime) -> str:
    return f"{moment:%m-%d}" if moment.hour == moment.minute == 0 else f"{moment:%H:%M}"
