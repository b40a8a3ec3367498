"""Units, and values in them as words."""

from dataclasses import dataclass
from typing import Final, Literal

Dimension = Literal["duration", "size", "rate", "ratio", "segments", "flag"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit and what one of it is in its dimension's base unit (see `model`)."""

    name: str
    dimension: Dimension
    factor: int


UNITS: Final = {
    unit.name: unit
    for unit in (
        Unit("us", "duration", 1),
        Unit("ms", "duration", 1_000),
        Unit("s", "duration", 1_000_000),
        Unit("m", "duration", 60_000_000),
        Unit("h", "duration", 3_600_000_000),
        Unit("d", "duration", 86_400_000_000),
        Unit("B", "size", 1),
        Unit("KB", "size", 1_000),
        Unit("MB", "size", 1_000_000),
        Unit("GB", "size", 1_000_000_000),
        Unit("KiB", "size", 1 << 10),
        Unit("MiB", "size", 1 << 20),
        Unit("GiB", "size", 1 << 30),
        Unit("bps", "rate", 1),
        Unit("kbps", "rate", 1_000),
        Unit("Mbps", "rate", 1_000_000),
        Unit("Gbps", "rate", 1_000_000_000),
        Unit("%", "ratio", 10_000),
        Unit("segments", "segments", 1),
    )
}

# Units that stand without a blank behind their number: `6h`, and `10 ms`.
TOUCHING: Final = frozenset(
    name for name, unit in UNITS.items() if unit.dimension == "duration" and len(name) == 1
)

# What people write for a unit, whatever the case of its letters; only suggested, never accepted.
UNIT_SPELLINGS: Final = {
    "usec": ("us",),
    "msec": ("ms",),
    "millisecond": ("ms",),
    "milliseconds": ("ms",),
    "sec": ("s",),
    "secs": ("s",),
    "second": ("s",),
    "seconds": ("s",),
    "min": ("m",),
    "mins": ("m",),
    "minute": ("m",),
    "minutes": ("m",),
    "hour": ("h",),
    "hours": ("h",),
    "day": ("d",),
    "days": ("d",),
    "byte": ("B",),
    "bytes": ("B",),
    "k": ("KB", "kbps"),
    "m": ("MB", "Mbps"),
    "g": ("GB", "Gbps"),
    "kbit": ("kbps",),
    "mbit": ("Mbps",),
    "gbit": ("Gbps",),
    "percent": ("%",),
    "segment": ("segments",),
    "packets": ("segments",),
}


def spell(value: int, dimension: Dimension) -> str:
    """A value in base units in the largest unit that gives a whole number, laid out as `tidegate fmt` does."""
    if dimension == "ratio":
        whole, rest = divmod(value, 10_000)
        return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") + "%"
    decimal = (unit for unit in UNITS.values() if unit.dimension == dimension and "i" not in unit.name)
    unit = max(
        (unit for unit in decimal if value % unit.factor == 0 and value),
        key=lambda unit: unit.factor,
        default=None,
    )
    if unit is None:
        return str(value)
    return f"{value // unit.factor}{'' if unit.name in TOUCHING else ' '}{unit.name}"
