"""A `learn` block: how far learned initial windows may grow."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from tidegate_dsl.diagnostics import Edit, Fix
from tidegate_dsl.model import PPM, Learn
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import reduce, reduce_within
from tidegate_dsl.vocabulary import DESTINATIONS_RANGE, EVERY_RANGE, EXPIRE_RANGE, SMOOTH_RANGE

from .repeats import check_repeats
from .scope import Scope
from .window import check_window

_DIRECTIONS: Final[tuple[Literal["peer_pops", "origins"], ...]] = ("peer_pops", "origins")


def check_learn(block: tree.Block, scope: Scope) -> Learn | None:
    """The rule; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    where, smooth, set_, expire = (
        find(clauses, tree.In),
        find(clauses, tree.Smooth),
        find(clauses, tree.SetInitcwnd),
        find(clauses, tree.Expire),
    )
    pops = scope.pops(where) if where else None
    weight = _weight(smooth.weight, scope) if smooth else None
    every = (
        reduce_within(smooth.every, "duration", EVERY_RANGE, "interval", scope.findings) if smooth else None
    )
    bounds = _bounds(set_, scope) if set_ else None
    lifetime = (
        reduce_within(expire.duration, "duration", EXPIRE_RANGE, "expire", scope.findings) if expire else None
    )
    share = _hold_out(find(clauses, tree.HoldOut), scope)
    offered = find(clauses, tree.SetWindow)
    receive = (
        check_window(offered, "initrwnd", scope.limits.initrwnd_max_segments, scope) if offered else None
    )
    if expire and smooth and lifetime is not None and every is not None and lifetime < every:
        scope.findings.error(
            "C114",
            f"what is learned expires after {expire.duration.text}, before the next observation",
            expire.duration.span,
            notes=(f"observed every {smooth.every.text} (line {scope.text.line_number(smooth.span)})",),
            help=f"use at least `{smooth.every.text}`",
        )
        return None
    if pops is None or weight is None or every is None or bounds is None or lifetime is None:
        return None
    if share is None or (offered and receive is None):
        return None
    toward = find(clauses, tree.Toward)
    if toward is None:
        return None
    named = [name.text for name in toward.directions]
    if check_repeats(toward.directions, named, scope.findings):
        return None
    return Learn(
        name=block.name.text,
        clause=scope.clause(block.span),
        pops=pops,
        smooth_ppm=weight,
        every_us=every,
        initcwnd_min=bounds[0],
        initcwnd_max=bounds[1],
        expire_us=lifetime,
        toward=tuple(direction for direction in _DIRECTIONS if direction in named),
        hold_out_ppm=share,
        initrwnd=receive,
    )


def check_one_learn_per_pop(learns: Iterable[tuple[tree.Block, Learn]], scope: Scope) -> None:
    """Report a POP in which two rules learn: a host has one set of learned windows."""
    owners: dict[str, str] = {}
    for block, learn in learns:
        taken = [pop for pop in learn.pops if pop in owners]
        where = find(block.body.clauses, tree.In)
        if taken and where:
            scope.of(block).findings.error(
                "C112",
                f"`{owners[taken[0]]}` learns in `{taken[0]}` already",
                where.span,
                help=f"write `except {taken[0]}`, or put both into one rule",
            )
        for pop in learn.pops:
            owners.setdefault(pop, learn.name)


def _hold_out(clause: tree.HoldOut | None, scope: Scope) -> int | None:
    """The share of the destinations in parts per million, 0 without the clause; None where it is reported."""
    if clause is None:
        return 0
    return reduce_within(clause.share, "ratio", DESTINATIONS_RANGE, "hold_out", scope.findings)


def _weight(weight: tree.Quantity, scope: Scope) -> int | None:
    """The weight of the newest observation in parts per million."""
    if weight.unit is not None:
        scope.findings.error(
            "T102",
            f"expected a plain number, found `{weight.text}`",
            weight.span,
            help="write a number above 0 and up to 1, such as `0.5`",
        )
        return None
    ppm = weight.times(PPM)
    if ppm is None:
        scope.findings.error(
            "T106",
            f"`{weight.text}` is finer than 1 ppm (0.000001)",
            weight.span,
            help="write at most 6 decimals",
        )
    elif not SMOOTH_RANGE.low <= ppm <= SMOOTH_RANGE.high:
        scope.findings.error(
            "T105",
            f"a weight of `{weight.text}` is out of range",
            weight.span,
            help="write a number above 0 and up to 1",
        )
        return None
    return ppm


def _bounds(clause: tree.SetInitcwnd, scope: Scope) -> tuple[int, int] | None:
    """Lowest and highest initial window, in segments; the first number may leave its unit to the second."""
    low = reduce(replace(clause.low, unit=clause.low.unit or "segments"), "segments", scope.findings)
    high = reduce(clause.high, "segments", scope.findings)
    if low is None or high is None:
        return None
    most = scope.limits.initcwnd_max_segments
    if high > most.value:
        scope.findings.error(
            "T104",
            f"initcwnd cap of {clause.high.text} is above the limit of {most.value}",
            clause.high.span,
            notes=(f"limit set in {most.origin}",),
            help=f"use `{most.value} segments`, or raise the limit in a reviewed change",
        )
        return None
    if low > high:
        scope.findings.error(
            "C104",
            f"the lower bound {low} is above the upper bound {high}",
            clause.low.span.to(clause.high.span),
            help=f"write `between {high} and {low} segments`",
            fix=_swapped(clause, low, high) if high and low <= most.value else None,
        )
        return None
    if low < 1:
        scope.findings.error(
            "T105", "an initcwnd of 0 segments sends nothing", clause.low.span, help="use at least 1"
        )
        return None
    return low, high


def _swapped(clause: tree.SetInitcwnd, low: int, high: int) -> Fix:
    edits = (Edit(clause.low.span, str(high)), Edit(clause.high.span, f"{low} segments"))
    return Fix(f"write `between {high} and {low} segments`", edits)
