"""The host's own routes, asked as the kernel would be: the longest prefix, then the lowest priority."""

from collections.abc import Iterable, Iterator

from .prefix import Key, PrefixIndex, order
from .route import Route


class Table:
    """An index over routes that other owners installed; those that no plain connection would use are left out."""

    def __init__(self, routes: Iterable[Route]) -> None:
        best: dict[Key, Route] = {}
        for route in routes:
            key = order(route.prefix)
            known = best.get(key)
            if route.path.usable and (known is None or _rank(route) < _rank(known)):
                best[key] = route
        self._routes = best
        self._index = PrefixIndex(best.items())

    def best(self, prefix: Key) -> Route | None:
        """The route for addresses of the prefix, apart from routes inside it; None where no route leads there."""
        return self._index.nearest(prefix)

    def __iter__(self) -> Iterator[tuple[Key, Route]]:
        """The routes that are used, one a prefix, in the order of prefixes."""
        return iter(sorted(self._routes.items()))


def _rank(route: Route) -> tuple[int, int]:
    return route.priority, -route.path.preference
