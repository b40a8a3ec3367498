"""Numbers and their units as an editor shows them."""

from typing import Final

from tidegate_dsl.syntax import Quantity
from tidegate_dsl.vocabulary import UNITS, Dimension, Unit

BASE: Final[dict[Dimension, str]] = {
    "duration": "microseconds",
    "size": "bytes",
    "rate": "bits per second",
    "ratio": "parts per million",
    "segments": "segments",
    "flag": "",
}


def units_of(dimension: Dimension) -> list[Unit]:
    """The units of a dimension, the smallest first."""
    return [unit for unit in UNITS.values() if unit.dimension == dimension]


def conversion(unit: Unit) -> str:
    """What one of a unit is in its dimension's base unit."""
    return f"1 {unit.name} = {unit.factor:,} {BASE[unit.dimension]}"


def value(quantity: Quantity) -> str | None:
    """A quantity in base units; None where it has no unit or is no whole number of them."""
    unit = UNITS.get(quantity.unit or "")
    whole = quantity.times(unit.factor) if unit else None
    return None if unit is None or whole is None else f"{quantity.text} = {whole:,} {BASE[unit.dimension]}"
