"""`tidegate-collector health`: the host's own health as rows of their own. Only wires."""

import time

import click

from .health_counters import read_counters
from .health_rows import make_row
from .kafka_options import KafkaOptions, kafka_options, shipped_by
from .option_types import duration_ns
from .options import METRICS, OUT_MIB, RowOptions, row_options, system_host
from .stop import stopped_by_signals
from .streams import HOST_STREAM
from .totals import print_totals, serve_totals


@click.command(
    epilog="Example: tidegate-collector health --pop ams1 --interval 1m --kafka kafka1.example:9093"
    " --kafka-config /etc/tidegate/kafka.conf"
)
@click.option(
    "--interval", callback=duration_ns, default="1m", show_default=True, help="That a row tells about."
)
@click.option(
    "--count", type=click.IntRange(1), help="End after so many rows.  [default: at SIGTERM or SIGINT]"
)
@row_options
@kafka_options(HOST_STREAM)
@METRICS
@OUT_MIB
def health(
    interval: int,
    count: int | None,
    rows: RowOptions,
    kafka: KafkaOptions,
    metrics: tuple[str, int] | None,
    out_mib: int,
) -> None:
    """Tell how long tasks waited for a CPU, how much was stolen, and what softirqs took: a row an interval."""
    origin = rows.origin(system_host())
    stopped = stopped_by_signals()
    to_kafka = kafka.open_sink(origin, HOST_STREAM)
    sink = to_kafka or rows.open_sink(HOST_STREAM, out_mib)
    written = 0

    def totals() -> dict[str, int | str]:
        return {"rows": written, **shipped_by(to_kafka)}

    try:
        serve_totals(metrics, totals, dict)
        before, since_ns = read_counters(), time.monotonic_ns()
        while written != count and not stopped((since_ns + interval - time.monotonic_ns()) / 1e9):
            after, now_ns = read_counters(), time.monotonic_ns()
            row = make_row(
                origin.pop,
                origin.host,
                before,
                after,
                observed_us=(now_ns - since_ns) // 1000,
                observed_at_ns=time.time_ns(),
            )
            sink.write([row])
            before, since_ns = after, now_ns
            written += 1
    finally:
        sink.close()
        print_totals(totals(), as_json=rows.as_json)
