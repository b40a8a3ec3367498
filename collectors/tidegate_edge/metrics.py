"""Counters for Prometheus, on an HTTP server of its own thread."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .errors import MISSING_PART, Failure
from .totals import Totals

# Those that fall as well as rise; the rest are totals.
_GAUGES: Final = frozenset({"namespaces", "kafka_spooled", "kafka_failing"})


class Metrics:
    """Metrics of one process, served from now on.

    Args:
        address: IP address and port; port 0 takes a free one.
        shown: what is shown besides the process's own memory and time; asked anew for each scrape.

    Raises:
        Failure: the port is taken or not allowed.

    Attributes:
        port: that is served.
    """

    def __init__(self, address: tuple[str, int], *shown: Collector) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        for each in shown:
            registry.register(each)
        try:
            self._server, self._thread = start_http_server(address[1], address[0], registry)
        except OSError as error:
            raise Failure(
                f"--metrics {address[0]}:{address[1]}: {error.strerror}",
                help="name another port, or end what listens there: `ss -tlnp`",
                exit_code=MISSING_PART,
            ) from error
        self.port = int(self._server.server_port)

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Numbers(Collector):
    """Totals as `tidegate_collector_NAME`; text among them is an error, and shown as `kafka_failing`."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def collect(self) -> Iterator[Metric]:
        """A family for each number."""
        found = dict(self._totals())
        if "kafka_delivered" in found:
            found["kafka_failing"] = int("kafka_error" in found)
        for name, number in found.items():
            if isinstance(number, int):
                family = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
                yield family(f"tidegate_collector_{name}", _HELP[name], value=number)


class Labelled(Collector):
    """One family, a number for each value of its label.

    Args:
        family: of the numbers, GaugeMetricFamily or CounterMetricFamily.
        name: behind `tidegate_collector_`.
        help: what it is.
        label: its name.
        numbers: by the label's value.
    """

    def __init__(
        self,
        family: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        help: str,  # noqa: A002
        label: str,
        numbers: Callable[[], Mapping[str, int]],
    ) -> None:
        self._family = family
        self._named = (f"tidegate_collector_{name}", help)
        self._label = label
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """The family."""
        family = self._family(*self._named, labels=[self._label])
        for value, number in self._numbers().items():
            family.add_metric([value], number)
        yield family


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
