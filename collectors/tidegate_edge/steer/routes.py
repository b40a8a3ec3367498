"""Wanted settings to routes, and routes to changes: the plan of the route backend, no I/O.

Every route is a clone of the host's route that would serve the prefix, with the settings added and with an owner
and a key (prefix and priority) of its own, so that the host's routes are never replaced. Where the host has a route
to the very prefix, ours comes before it by a priority one lower; where none is lower, by its two halves, which are
more specific. Elsewhere ours has a priority that any later route of the host to that prefix beats: until the next
run the host's wins.
"""

import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from .claims import NotApplied, Settings, Wanted
from .netlink import Change
from .prefix import Key, Prefix, PrefixIndex, order
from .route import ROUTE_PROTOCOL, TYPE_NAMES, UNICAST, Attributes, Path, Route
from .table import Table

# Higher than any that Linux, systemd-networkd, NetworkManager or a routing daemon gives by itself.
OWN_PRIORITY: Final = 201_000_000
# The lowest: IPv6 reads 0 as "not said" and makes it 1024.
FIRST_PRIORITY: Final = {4: 0, 6: 1}
RTAX_INITCWND: Final = 11  # linux/rtnetlink.h
RTAX_INITRWND: Final = 14
RTAX_CC_ALGO: Final = 16
TCP_METRICS: Final = frozenset({RTAX_INITCWND, RTAX_INITRWND, RTAX_CC_ALGO})
SHADOWS_SHOWN: Final = 3

NO_ROUTE: Final = "no route of the host's main table leads there"


RouteKey: TypeAlias = tuple[Key, int]
"""Prefix and priority: what tells routes of one table apart."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What the operator should know, although nothing failed; prefix None: it concerns no single one."""

    prefix: Prefix | None
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """From the agent's routes as found (`before`) to those wanted (`after`), both in the order of prefixes.

    `changes` are to be made in their order: what is new stands before what goes, so that no prefix is without its
    settings in between. `by_claim` are the wanted routes by claimed prefix; a claim that cannot be kept has none.
    `parts` are prefixes smaller than half of a claim whose best route was looked for.
    """

    before: tuple[Route, ...]
    after: tuple[Route, ...]
    changes: tuple[tuple[Change, Route], ...]
    by_claim: Mapping[Prefix, tuple[Route, ...]]
    not_applied: tuple[NotApplied, ...]
    notices: tuple[Notice, ...]
    parts: frozenset[Key]


def in_order(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Routes in the order of prefixes."""
    return tuple(_keyed(routes).values())


def plan_routes(routes: Iterable[Route], rule_tables: Sequence[int], wanted: Wanted) -> Plan:
    """Compare what the kernel's main table holds with what is wanted.

    Args:
        routes: the main table as read, the agent's own routes among them.
        rule_tables: other tables to which policy rules lead.
        wanted: settings by prefix.
    """
    own: list[Route] = []
    others: list[Route] = []
    for route in routes:
        (own if route.own else others).append(route)
    claimed = {order(prefix): prefix for prefix in wanted.settings}
    placing = _Placing(Table(others), claimed)
    by_claim = {
        prefix: placing.place(key, prefix, settings)
        for (key, prefix), settings in zip(claimed.items(), wanted.settings.values(), strict=True)
    }
    before, after = _keyed(own), dict(sorted(placing.placed.items()))
    return Plan(
        tuple(before.values()),
        tuple(after.values()),
        tuple(_changes(before, after)),
        by_claim,
        (*wanted.not_applied, *placing.not_applied),
        (*_other_tables(rule_tables, wanted), *_shadows(claimed, placing.table)),
        frozenset(placing.parts),
    )


class _Placing:
    """Clones of the host's routes for settings; clones that differ by nothing but their prefix share one path."""

    def __init__(self, table: Table, claimed: Mapping[Key, Prefix]) -> None:
        self.table = table
        self.placed: dict[RouteKey, Route] = {}
        self.not_applied: list[NotApplied] = []
        self.parts: set[Key] = set()
        self._claimed = claimed
        self._paths: dict[tuple[int, Settings], Path] = {}

    def place(self, key: Key, prefix: Prefix, settings: Settings) -> tuple[Route, ...]:
        """The routes that give a prefix its settings; notes each part that cannot have them."""
        best = self.table.best(key)
        if best is None:
            return self._refuse(prefix, settings, NO_ROUTE)
        if best.path.type != UNICAST:
            kind = TYPE_NAMES.get(best.path.type, f"of type {best.path.type}")
            return self._refuse(prefix, settings, f"the host's route to {best.prefix} is {kind}")
        if best.prefix.prefixlen < key[2]:  # it covers the prefix, and is shorter
            priority = OWN_PRIORITY
        elif best.priority > FIRST_PRIORITY[key[0]]:
            priority = best.priority - 1
        elif prefix.prefixlen < prefix.max_prefixlen:
            halves = [(order(half), half) for half in prefix.subnets()]
            if key not in self._claimed:
                self.parts.update(half_key for half_key, _ in halves)
            parts = [self.place(*half, settings) for half in halves if half[0] not in self._claimed]
            return tuple(route for part in parts for route in part)
        else:
            reason = f"the host's own route has metric {best.priority}, and none comes before it"
            return self._refuse(prefix, settings, reason)
        route = Route(prefix, priority, self._path(best, settings))
        self.placed[key, priority] = route
        return (route,)

    def _refuse(self, prefix: Prefix, settings: Settings, reason: str) -> tuple[()]:
        self.not_applied += [NotApplied(prefix, attribute, reason) for attribute in settings.stated()]
        return ()

    def _path(self, route: Route, settings: Settings) -> Path:
        key = id(route.path), settings  # the table keeps the path alive, and to hash one is slow
        if key not in self._paths:
            self._paths[key] = replace(
                route.path,
                protocol=ROUTE_PROTOCOL,
                metrics=_with(route.path.metrics, settings),
                preference=0,
            )
        return self._paths[key]


def _with(metrics: Attributes, settings: Settings) -> Attributes:
    merged = dict(metrics)
    if settings.congestion_control:
        merged[RTAX_CC_ALGO] = settings.congestion_control.encode("ascii") + b"\0"
    for number, segments in ((RTAX_INITCWND, settings.initcwnd), (RTAX_INITRWND, settings.initrwnd)):
        if segments:
            merged[number] = struct.pack("=I", segments)
    return tuple(sorted(merged.items()))


def settings_of(metrics: Attributes) -> Settings:
    """The settings that a route's metrics carry, its own and those that it had from the host's route."""
    values = dict(metrics)
    algorithm = values.get(RTAX_CC_ALGO, b"").rstrip(b"\0").decode("ascii", "replace")
    initcwnd, initrwnd = (
        int.from_bytes(values.get(number, b""), sys.byteorder) or None
        for number in (RTAX_INITCWND, RTAX_INITRWND)
    )
    return Settings(algorithm or None, initcwnd, initrwnd)


def _keyed(routes: Iterable[Route]) -> dict[RouteKey, Route]:
    found = {(order(route.prefix), route.priority): route for route in routes}
    return dict(sorted(found.items()))


def _changes(
    before: Mapping[RouteKey, Route], after: Mapping[RouteKey, Route]
) -> Iterator[tuple[Change, Route]]:
    for key, route in after.items():
        if key not in before:
            yield "add", route
        elif before[key] != route:
            yield "replace", route
    yield from (("remove", route) for key, route in before.items() if key not in after)


def _other_tables(rule_tables: Sequence[int], wanted: Wanted) -> Iterator[Notice]:
    if rule_tables and wanted.settings:
        names = ", ".join(str(table) for table in rule_tables)
        yield Notice(
            None, f"policy rules lead to the tables {names}; only routes of the table main are steered"
        )


def _shadows(claimed: Mapping[Key, Prefix], table: Table) -> Iterator[Notice]:
    """Claims inside which the host has routes of its own that no claim reaches."""
    claims = PrefixIndex(claimed.items())
    shadowing: dict[Prefix, list[str]] = {}
    for key, route in table:
        claim = claims.nearest(key)
        if claim is not None and claim != route.prefix:
            shadowing.setdefault(claim, []).append(str(route.prefix))
    for claim in sorted(shadowing, key=order):
        names = shadowing[claim]
        more = " and more" if len(names) > SHADOWS_SHOWN else ""
        yield Notice(claim, f"shadowed by the host's more specific {', '.join(names[:SHADOWS_SHOWN])}{more}")
