"""What Prometheus is shown of polls besides their counters."""

from collections.abc import Callable
from typing import Final

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily

from .metrics import Labelled

# From a host with a few sockets to one with a million.
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def poll_seconds() -> Histogram:
    """How long polls took, to be observed."""
    return Histogram(
        "tidegate_collector_poll_seconds",
        "From the request to the last row written, all namespaces.",
        buckets=_SECONDS,
        registry=None,
    )


def readers_in_use(readers: Callable[[], tuple[str, ...]]) -> Labelled:
    """Namespaces by the reader that reads them.

    Args:
        readers: the name of the reader in use for each namespace.
    """
    return Labelled(
        GaugeMetricFamily,
        "reader",
        "Namespaces read by each reader.",
        "reader",
        lambda: {name: readers().count(name) for name in ("bpf", "netlink")},
    )
