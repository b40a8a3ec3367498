"""Numbers with units to whole numbers in base units, exactly, and back to words."""

from typing import Final

from tidegate_dsl.diagnostics import Findings, Fix, listed, nearest, replacement, spelling
from tidegate_dsl.syntax import Quantity
from tidegate_dsl.vocabulary import DIMENSION_RANGES, UNIT_SPELLINGS, UNITS, Dimension, Range, spell

_NOUNS: Final[dict[Dimension, tuple[str, str]]] = {
    "duration": ("a duration", "5m"),
    "size": ("a size", "100 KB"),
    "rate": ("a rate", "5 Mbps"),
    "ratio": ("a percentage", "20%"),
    "segments": ("a number of segments", "10 segments"),
    "flag": ("a flag", "app_limited"),
}
_BASE: Final[dict[Dimension, str]] = {
    "duration": "1 us",
    "size": "1 B",
    "rate": "1 bps",
    "ratio": "1 ppm (0.0001%)",
    "segments": "1 segment",
    "flag": "1",
}
_PPM: Final = 1_000_000
_UNIT_NAMES: Final[dict[Dimension, list[str]]] = {
    dimension: [unit.name for unit in UNITS.values() if unit.dimension == dimension] for dimension in _NOUNS
}


def reduce(
    quantity: Quantity, dimension: Dimension, findings: Findings, *, bounds: Range | None = None
) -> int | None:
    """The value in its dimension's base unit (`model`), or None where it is reported.

    `bounds` are for the fix only: a unit that makes the value too large is not the one that was meant.
    """
    noun, example = _NOUNS[dimension]
    if quantity.unit is None:
        _report_no_unit(quantity, dimension, bounds, findings)
        return None
    unit = UNITS.get(quantity.unit)
    if unit is None:
        _report_unknown_unit(quantity, quantity.unit, dimension, bounds, findings)
        return None
    if unit.dimension != dimension:
        found, _ = _NOUNS[unit.dimension]
        findings.error(
            "T102",
            f"expected {noun}, `{quantity.text}` is {found}",
            quantity.span,
            help=f"write {noun} such as `{example}`",
        )
        return None
    value = quantity.times(unit.factor)
    if value is None:
        findings.error(
            "T106",
            f"`{quantity.text}` is finer than {_BASE[dimension]}",
            quantity.span,
            help="no value is rounded; write fewer decimals",
        )
    return value


def _report_no_unit(
    quantity: Quantity, dimension: Dimension, bounds: Range | None, findings: Findings
) -> None:
    noun, example = _NOUNS[dimension]
    units = _UNIT_NAMES[dimension]
    choice = f"; units: {listed(units)}" if len(units) > 1 else ""
    way_out = f"write {noun} such as `{example}`{choice}"
    fix = _with_unit(quantity, units[0], bounds) if len(units) == 1 else None
    share = quantity.times(_PPM) if dimension == "ratio" else None
    if share and share <= _PPM:  # `0.75` is mostly 75%, a hundred times what it would be with `%` behind it
        way_out, fix = f"is `{spell(share, dimension)}` meant, or `{quantity.text}%`?", None
    message = f"`{quantity.text}` has no unit, {noun} is expected"
    findings.error("T101", message, quantity.span, help=way_out, fix=fix)


def _report_unknown_unit(
    quantity: Quantity, unit: str, dimension: Dimension, bounds: Range | None, findings: Findings
) -> None:
    units = _UNIT_NAMES[dimension]
    usual = next((name for name in UNIT_SPELLINGS.get(unit.lower(), ()) if name in units), None)
    meant = usual or nearest(unit, units)
    way_out = f"did you mean `{meant}`?" if meant else f"units of {_NOUNS[dimension][0]}: {listed(units)}"
    if meant and meant.lower() == unit.lower() and _bits_or_bytes(meant) != _bits_or_bytes(unit):
        way_out += " `b` is a bit, `B` a byte"
    known = usual or _near(quantity, unit, units)
    fix = _with_unit(quantity, known, bounds) if known else None
    findings.error("T103", f"`{unit}` is no unit", quantity.span, help=way_out, fix=fix)


def _near(quantity: Quantity, unit: str, units: list[str]) -> str | None:
    """The unit that only letters' case keeps from being right, or the only one: a magnitude is never guessed."""
    same = [name for name in units if name.lower() == unit.lower()]
    if len(same) == 1:
        return same[0] if _bits_or_bytes(same[0]) == _bits_or_bytes(unit) else None
    return units[0] if len(units) == 1 and spelling(quantity.span, unit, units) else None


def _bits_or_bytes(unit: str) -> list[str]:
    return [letter for letter in unit if letter in "bB"]


def _with_unit(quantity: Quantity, unit: str, bounds: Range | None) -> Fix | None:
    """The fix that writes the number with this unit, if it is in range then."""
    within = bounds or DIMENSION_RANGES[UNITS[unit].dimension]
    value = quantity.times(UNITS[unit].factor)
    if value is None or not within.low <= value <= within.high:
        return None
    number = quantity.text.removesuffix(quantity.unit or "").rstrip()
    return replacement(quantity.span, f"{number}%" if unit == "%" else f"{number} {unit}")


def reduce_within(
    quantity: Quantity, dimension: Dimension, bounds: Range, what: str, findings: Findings
) -> int | None:
    """The value in base units if it lies within `bounds`, or None where it is reported."""
    value = reduce(quantity, dimension, findings, bounds=bounds)
    if value is not None and not bounds.low <= value <= bounds.high:
        shown = f"between {spell(bounds.low, dimension)} and {spell(bounds.high, dimension)}"
        findings.error(
            "T105",
            f"{what} of `{quantity.text}` is out of range",
            quantity.span,
            help=f"write a value {shown}",
        )
        return None
    return value


def count_within(quantity: Quantity, bounds: Range, what: str, findings: Findings) -> int | None:
    """A count if it lies within `bounds`, or None where it is reported."""
    if not bounds.low <= quantity.mantissa <= bounds.high:
        findings.error(
            "T105",
            f"{what} of `{quantity.text}` is out of range",
            quantity.span,
            help=f"write a number between {bounds.low} and {bounds.high}",
        )
        return None
    return quantity.mantissa
