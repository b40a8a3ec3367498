"""Wanted settings to routes, and routes to changes: the plan of the route backend, no I/O.

Every route is a clone of the host's route that would serve the prefix, with the settings added and with an owner
and a key (prefix and priority) of its own, so that the host's routes are never replaced. Where the host has a route
to the very prefix, ours comes before it by a priority one lower; where none is lower, by its two halves, which are
more specific. Elsewhere ours has a priority that any later route of the host to that prefix beats: until the next
run the host's wins.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from .claims import NotApplied, Settings, Wanted
from .netlink import Change
from .prefix import Prefix, covering, lengths_of, order
from .route import ROUTE_PROTOCOL, TYPE_NAMES, UNICAST, Attributes, Route
from .table import Table

# Higher than any that Linux, systemd-networkd, NetworkManager or a routing daemon gives by itself.
OWN_PRIORITY: Final = 201_000_000
# The lowest: IPv6 reads 0 as "not said" and makes it 1024.
FIRST_PRIORITY: Final = {4: 0, 6: 1}
RTAX_INITCWND: Final = 11  # linux/rtnetlink.h
RTAX_INITRWND: Final = 14
RTAX_CC_ALGO: Final = 16
SHADOWS_SHOWN: Final = 3

NO_ROUTE: Final = "no route of the host's main table leads there"


@dataclass(frozen=True, slots=True)
class Notice:
    """What the operator should know, although nothing failed; prefix None: it concerns no single one."""

    prefix: Prefix | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Refusal:
    prefix: Prefix
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """From the agent's routes as found (`before`) to those wanted (`after`), both in the order of prefixes.

    `changes` are to be made in their order: what is new stands before what goes, so that no prefix is without its
    settings in between. `by_claim` are the wanted routes by claimed prefix; a claim that cannot be kept has none.
    """

    before: tuple[Route, ...]
    after: tuple[Route, ...]
    changes: tuple[tuple[Change, Route], ...]
    by_claim: Mapping[Prefix, tuple[Route, ...]]
    not_applied: tuple[NotApplied, ...]
    notices: tuple[Notice, ...]


def own_routes(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The agent's routes among others, in the order of prefixes."""
    return tuple(sorted((route for route in routes if route.own), key=_key))


def plan_routes(routes: Iterable[Route], rule_tables: Sequence[int], wanted: Wanted) -> Plan:
    """Compare what the kernel's main table holds with what is wanted.

    Args:
        routes: the main table as read, the agent's own routes among them.
        rule_tables: other tables to which policy rules lead.
        wanted: settings by prefix.
    """
    found = list(routes)
    table = Table(route for route in found if not route.own)
    by_claim: dict[Prefix, tuple[Route, ...]] = {}
    not_applied = list(wanted.not_applied)
    for prefix, settings in wanted.settings.items():
        placed = list(_place(prefix, settings, table, wanted.settings))
        by_claim[prefix] = tuple(each for each in placed if isinstance(each, Route))
        for refusal in placed:
            if isinstance(refusal, _Refusal):
                not_applied += [
                    NotApplied(refusal.prefix, name, refusal.reason) for name in settings.stated()
                ]
    before = own_routes(found)
    after = own_routes(route for each in by_claim.values() for route in each)
    return Plan(
        before,
        after,
        tuple(_changes(before, after)),
        by_claim,
        tuple(not_applied),
        (*_other_tables(rule_tables, wanted), *_shadows(wanted.settings, table)),
    )


def _place(
    prefix: Prefix, settings: Settings, table: Table, claimed: Mapping[Prefix, Settings]
) -> Iterator[Route | _Refusal]:
    """The routes that give a prefix its settings; a refusal for each part that cannot have them."""
    best = table.best(prefix)
    if best is None:
        yield _Refusal(prefix, NO_ROUTE)
    elif best.type != UNICAST:
        kind = TYPE_NAMES.get(best.type, f"of type {best.type}")
        yield _Refusal(prefix, f"the host's route to {best.prefix} is {kind}")
    elif best.prefix != prefix:
        yield _clone(best, prefix, OWN_PRIORITY, settings)
    elif best.priority > FIRST_PRIORITY[prefix.version]:
        yield _clone(best, prefix, best.priority - 1, settings)
    elif prefix.prefixlen < prefix.max_prefixlen:
        for half in prefix.subnets():
            if half not in claimed:
                yield from _place(half, settings, table, claimed)
    else:
        yield _Refusal(prefix, f"the host's own route has metric {best.priority}, and none comes before it")


def _clone(route: Route, prefix: Prefix, priority: int, settings: Settings) -> Route:
    return replace(
        route,
        prefix=prefix,
        priority=priority,
        protocol=ROUTE_PROTOCOL,
        metrics=_with(route.metrics, settings),
        preference=0,
    )


def _with(metrics: Attributes, settings: Settings) -> Attributes:
    merged = dict(metrics)
    if settings.congestion_control:
        merged[RTAX_CC_ALGO] = settings.congestion_control.encode("ascii") + b"\0"
    for number, segments in ((RTAX_INITCWND, settings.initcwnd), (RTAX_INITRWND, settings.initrwnd)):
        if segments:
            merged[number] = struct.pack("=I", segments)
    return tuple(sorted(merged.items()))


def _changes(before: tuple[Route, ...], after: tuple[Route, ...]) -> Iterator[tuple[Change, Route]]:
    held = {_key(route): route for route in before}
    wanted = {_key(route) for route in after}
    for route in after:
        if _key(route) not in held:
            yield "add", route
        elif held[_key(route)] != route:
            yield "replace", route
    yield from (("remove", route) for route in before if _key(route) not in wanted)


def _key(route: Route) -> tuple[tuple[int, int, int], int]:
    return order(route.prefix), route.priority


def _other_tables(rule_tables: Sequence[int], wanted: Wanted) -> Iterator[Notice]:
    if rule_tables and wanted.settings:
        names = ", ".join(str(table) for table in rule_tables)
        yield Notice(
            None, f"policy rules lead to the tables {names}; only routes of the table main are steered"
        )


def _shadows(claimed: Mapping[Prefix, Settings], table: Table) -> Iterator[Notice]:
    """Claims inside which the host has routes of its own that no claim reaches."""
    lengths = lengths_of(claimed)
    for prefix in claimed:
        shadowing = (
            route
            for route in table.inside(prefix)
            if next(each for each in covering(route.prefix, lengths) if each in claimed) == prefix
        )
        shown = [str(route.prefix) for route in islice(shadowing, SHADOWS_SHOWN + 1)]
        if shown:
            more = " and more" if len(shown) > SHADOWS_SHOWN else ""
            yield Notice(
                prefix, f"shadowed by the host's more specific {', '.join(shown[:SHADOWS_SHOWN])}{more}"
            )
