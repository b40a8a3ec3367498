"""What a command counts: shown to Prometheus while it runs, and to people when it ends."""

import json
from collections.abc import Callable, Mapping

import click

Totals = Callable[[], Mapping[str, int | str]]
"""Numbers by name, as they are now."""


def serve_totals(
    address: tuple[str, int] | None, totals: Totals, trouble: Callable[[], Mapping[str, int]]
) -> None:
    """Serve Prometheus until the process ends, if an address is given; standard error is told where.

    Args:
        address: IP address and port.
        totals: each becomes `tidegate_collector_NAME`.
        trouble: what was lost or damaged, by kind.

    Raises:
        Failure: the port is taken or not allowed.
    """
    if address is None:
        return
    # Only where it is asked for: the import takes time and memory.
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

    from .metrics import Labelled, Metrics, Numbers  # noqa: PLC0415

    kinds = Labelled(CounterMetricFamily, "trouble", "What was lost or damaged.", "kind", trouble)
    metrics = Metrics(address, Numbers(totals), kinds)
    click.echo(f"metrics: http://{address[0]}:{metrics.port}/metrics", err=True)


def print_totals(totals: Mapping[str, int | str], *, as_json: bool) -> None:
    """Print them to standard error, on one line."""
    text = json.dumps(totals) if as_json else ", ".join(f"{name} {total}" for name, total in totals.items())
    click.echo(text, err=True)
