"""A window that a clause names: whole segments, within the limits file's bound."""

from typing import Final, Literal

from tidegate_dsl.fleet import Limit
from tidegate_dsl.syntax import tree
from tidegate_dsl.values import reduce

from .scope import Scope

_AT_ZERO: Final = {"initcwnd": "sends nothing", "initrwnd": "lets nobody send"}


def check_window(
    clause: tree.SetWindow, name: Literal["initcwnd", "initrwnd"], most: Limit, scope: Scope
) -> int | None:
    """The window in segments, or None where it is reported.

    Args:
        clause: what says it.
        name: which window it is.
        most: the limits file's bound, in segments.
        scope: where mistakes go.
    """
    quantity = clause.segments
    value = reduce(quantity, "segments", scope.findings)
    if value is None:
        return None
    if value > most.value:
        scope.findings.error(
            "T104",
            f"{name} of {quantity.text} is above the limit of {most.value}",
            quantity.span,
            notes=(f"limit set in {most.origin}",),
            help=f"use `{most.value} segments`, or raise the limit in a reviewed change",
        )
        return None
    if value < 1:
        scope.findings.error(
            "T105", f"an {name} of 0 segments {_AT_ZERO[name]}", quantity.span, help="use at least 1"
        )
        return None
    return value
