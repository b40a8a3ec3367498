"""Steering by routes: settings in, clones of the host's routes in the kernel out, and read back from there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

from .claims import NotApplied, Settings, Wanted
from .host_plan import plan_for_host
from .kernel import Rejected, change_routes, read_own_routes, require_net_admin
from .prefix import Prefix, order
from .route import Attributes, Route
from .routes import TCP_METRICS, Notice, settings_of

VARIANT: Final = "routes"
ERRORS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of settings.

    Attributes:
        generation: of the settings; routes have no room for it.
        settings: what `read` finds from now on, unless someone changes it.
        not_applied: what the host's routing does not allow.
        rejected: routes that the kernel refused; each names its prefix.
        notices: what the operator should know, although nothing failed.
    """

    generation: str
    settings: Mapping[Prefix, Settings]
    not_applied: tuple[NotApplied, ...]
    rejected: tuple[Rejected, ...]
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """What the kernel holds of ours; a route keeps neither its generation nor counts.

    Attributes:
        attached: whether this process may change routes.
        variant: `routes`.
        generation: None.
        settings: by claimed prefix, where its routes stand as `apply` planned them, apart from the settings
            themselves; and by its own prefix each route of ours that was not planned.
        counters: none.
    """

    attached: bool
    variant: str
    generation: None
    settings: Mapping[Prefix, Settings]
    counters: Mapping[Prefix, object]


@dataclass(frozen=True, slots=True)
class _Placed:
    """What prefixes were to have, and the routes planned for each: one, two halves or more, or none."""

    settings: Mapping[Prefix, Settings]
    routes: Mapping[Prefix, tuple[Route, ...]]


_NOTHING: Final = _Placed({}, {})


class RouteBackend:
    """Keeps the agent's routes in the main table of this network namespace.

    It remembers what `apply` planned, to tell by which claim a route stands; what stands it asks the kernel.
    """

    name: Final = "routes"
    gates: Final = False
    follows_routing: Final = True

    def __init__(self) -> None:
        self._placed = _NOTHING
        self._seen: tuple[Sequence[Route], Mapping[Prefix, Settings]] | None = None

    def attach(self) -> None:
        """Check that routes can be changed; there is nothing to attach.

        Raises:
            Failure: this process has no CAP_NET_ADMIN.
        """
        require_net_admin()

    def apply(self, generation: str, settings: Mapping[Prefix, Settings]) -> Applied:
        """Make the kernel hold routes for these settings, and none other of ours; a second time changes nothing.

        What one prefix can't have keeps no other from its own. A prefix whose new route the kernel refuses keeps the
        one before.

        Args:
            generation: of the settings.
            settings: by prefix, as `claims.want` merges them for a host that can't gate.

        Raises:
            Failure: the kernel does not answer; what was sent until then stands.
            ValueError: an algorithm waits for a transfer size, which no route can.
        """
        if any(each.min_bytes for each in settings.values()):
            raise ValueError("routes cannot gate by transfer size: merge the claims with gates=False")
        plan = plan_for_host(Wanted(settings, ()))
        rejected = change_routes(plan.changes)
        held = dict(settings)
        for prefix, routes in plan.by_claim.items():
            if not routes:
                del held[prefix]
        self._placed, self._seen = _Placed(held, plan.by_claim), None
        return Applied(
            generation,
            self.read().settings if rejected else held,
            plan.not_applied,
            tuple(rejected),
            plan.notices,
        )

    def read(self) -> Held:
        """Read our routes back from the kernel.

        Raises:
            Failure: the kernel does not answer.
        """
        routes = read_own_routes()
        # Equal messages are read as one object, so that unchanged routes compare by identity.
        if self._seen is None or self._seen[0] != routes:
            self._seen = routes, _settings_by_prefix(routes, self._placed)
        return Held(_may_change_routes(), VARIANT, None, self._seen[1], {})

    def remove(self) -> None:
        """Remove our routes, and nothing else.

        Raises:
            Failure: the kernel refuses, or does not answer.
        """
        rejected = change_routes([("remove", route) for route in read_own_routes()])
        self._placed, self._seen = _NOTHING, None
        if rejected:
            shown = "; ".join(f"{each.route.prefix}: {each.reason}" for each in rejected[:ERRORS_SHOWN])
            raise Failure(
                f"{len(rejected)} of the agent's routes could not be removed: {shown}",
                help="`ip route show proto 201` and `ip -6 route show proto 201` show what is left",
                exit_code=MISSING_PART,
            )


def _may_change_routes() -> bool:
    try:
        require_net_admin()
    except Failure:
        return False
    return True


def _settings_by_prefix(routes: Iterable[Route], placed: _Placed) -> Mapping[Prefix, Settings]:
    left = {(route.prefix, route.priority): route for route in routes}
    found: dict[Prefix, Settings] = {}
    for prefix, wanted in placed.settings.items():
        planned = placed.routes[prefix]
        parts = [left.pop((each.prefix, each.priority), None) for each in planned]
        differing = list(_differing(wanted, planned, parts))
        if not differing:
            found[prefix] = wanted
        elif differing[0] is not None:
            found[prefix] = differing[0]
    for (prefix, _), route in left.items():
        if (
            prefix in placed.settings
        ):  # a route of ours that nobody planned stands before or behind the claim's
            found.pop(prefix, None)
        else:
            found[prefix] = settings_of(route.path.metrics)
    return {prefix: found[prefix] for prefix in sorted(found, key=order)}


def _differing(
    wanted: Settings, planned: Sequence[Route], parts: Sequence[Route | None]
) -> Iterator[Settings | None]:
    """What the kernel has where it is not as planned; None where the route is gone or goes another way."""
    for each, route in zip(planned, parts, strict=True):
        if route == each:
            continue
        if route is None or _way(route) != _way(each):
            yield None
        else:
            yield _read(wanted, each.path.metrics, route.path.metrics)


def _way(route: Route) -> object:
    """A route apart from the settings that steer."""
    rest = tuple((number, value) for number, value in route.path.metrics if number not in TCP_METRICS)
    return replace(route.path, metrics=rest)


def _read(wanted: Settings, planned: Attributes, found: Attributes) -> Settings:
    """The kernel's values; one that came with the host's route, and is as it was, counts as not set."""
    before, now = settings_of(planned), settings_of(found)
    return Settings(
        now.congestion_control
        if now.congestion_control != before.congestion_control
        else wanted.congestion_control,
        now.initcwnd if now.initcwnd != before.initcwnd else wanted.initcwnd,
        now.initrwnd if now.initrwnd != before.initrwnd else wanted.initrwnd,
    )
