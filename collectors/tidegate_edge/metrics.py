"""The collector's counters for Prometheus, on an HTTP server of its own thread."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .counters import Counters
from .errors import MISSING_PART, Failure

# Those that fall as well as rise; the rest are totals.
_GAUGES: Final = frozenset({"namespaces", "kafka_spooled", "kafka_failing"})

# From a host with a few sockets to one with a million.
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

Shipped = Callable[[], Mapping[str, int | str]]
"""What became of rows; an error is text."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is shown, read anew for each scrape.

    Attributes:
        counters: of the polls.
        readers: the name of the reader in use for each namespace.
        shipped: what became of the rows, where they go to Kafka.
    """

    counters: Counters
    readers: Callable[[], tuple[str, ...]]
    shipped: Shipped


class Metrics:
    """Metrics of one collector, served from now on.

    Args:
        address: IP address and port; port 0 takes a free one.
        watched: what is shown.

    Raises:
        Failure: the port is taken or not allowed.

    Attributes:
        port: that is served.
    """

    def __init__(self, address: tuple[str, int], watched: Watched) -> None:
        registry = CollectorRegistry()
        registry.register(_Numbers(watched))
        ProcessCollector(registry=registry)
        self._seconds = Histogram(
            "tidegate_collector_poll_seconds",
            "From the request to the last row written, all namespaces.",
            buckets=_SECONDS,
            registry=registry,
        )
        try:
            self._server, self._thread = start_http_server(address[1], address[0], registry)
        except OSError as error:
            raise Failure(
                f"--metrics {address[0]}:{address[1]}: {error.strerror}",
                help="name another port, or end what listens there: `ss -tlnp`",
                exit_code=MISSING_PART,
            ) from error
        self.port = int(self._server.server_port)

    def polled(self, seconds: float) -> None:
        """Note how long a poll took."""
        self._seconds.observe(seconds)

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Numbers(Collector):
    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterator[Metric]:
        counters = self._watched.counters
        numbers = {field.name: getattr(counters, field.name) for field in fields(counters)}
        shipped = dict(self._watched.shipped())
        if shipped:
            shipped["kafka_failing"] = int("kafka_error" in shipped)
            shipped.pop("kafka_error", None)
        for name, number in {**numbers, **shipped}.items():
            family = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
            yield family(f"tidegate_collector_{name}", _HELP[name], value=number)
        readers = GaugeMetricFamily(
            "tidegate_collector_reader", "Namespaces read by each reader.", labels=["reader"]
        )
        in_use = self._watched.readers()
        for reader in ("bpf", "netlink"):
            readers.add_metric([reader], in_use.count(reader))
        yield readers


_HELP: Final = {
    "polls": "Polls done and written.",
    "skipped": "Polls that were due while the one before was still running.",
    "spared": "Polls left out to stay below --max-cpu.",
    "rows": "Rows written.",
    "damaged": "Messages of the kernel that could not be read.",
    "left_out": "Sockets beyond --max-sockets.",
    "passed_over": "Sockets that are excluded or not in the sample.",
    "retries": "Dumps thrown away because the kernel lost or changed part of them.",
    "interrupted": "Dumps kept although the kernel marked them as inconsistent.",
    "namespaces": "Network namespaces read now, where all are read.",
    "namespaces_gone": "Network namespaces let go of.",
    "namespaces_failed": "Polls or openings of a network namespace that failed.",
    "namespaces_left_out": "Network namespaces seen beyond the most that are read, at each look.",
    "kafka_delivered": "Rows that the broker acknowledged, of this spool.",
    "kafka_dropped": "Rows never to be delivered, of this spool.",
    "kafka_spooled": "Rows on disk that are still to be delivered.",
    "kafka_failing": "1 while the broker does not take rows.",
}
