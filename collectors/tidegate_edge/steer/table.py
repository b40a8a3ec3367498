"""The host's own routes, asked as the kernel would be: the longest prefix, then the lowest priority."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from .prefix import Prefix, covering, lengths_of, order
from .route import Route


class Table:
    """An index over routes that other owners installed; those that no plain connection would use are left out."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[Prefix, Route] = {}
        for route in routes:
            known = self._routes.get(route.prefix)
            if route.usable and (known is None or _rank(route) < _rank(known)):
                self._routes[route.prefix] = route
        self._lengths = lengths_of(self._routes)
        self._sorted = sorted(self._routes, key=order)

    def best(self, prefix: Prefix) -> Route | None:
        """The route for addresses of the prefix, apart from routes inside it; None where no route leads there."""
        outer = covering(prefix, self._lengths)
        return next((self._routes[each] for each in outer if each in self._routes), None)

    def inside(self, prefix: Prefix) -> Iterator[Route]:
        """Routes more specific than the prefix, in the order of prefixes."""
        end = int(prefix.broadcast_address)
        for index in range(bisect_left(self._sorted, order(prefix), key=order), len(self._sorted)):
            inner = self._sorted[index]
            if inner.version != prefix.version or int(inner.network_address) > end:
                return
            if inner.prefixlen > prefix.prefixlen:
                yield self._routes[inner]


def _rank(route: Route) -> tuple[int, int]:
    return route.priority, -route.preference
