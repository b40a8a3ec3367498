"""`tidegate-collector health`: the host's own health as rows of their own. Only wires."""

import time

import click

from .health_counters import read_counters
from .health_rows import make_row
from .option_types import duration_ns
from .options import STANDARD_OUTPUT, RowOptions, row_options, system_host
from .schemas.hosts import HOSTS
from .ship.records import json_form, protobuf_form
from .ship.sink import FileSink, StreamSink
from .stop import stopped_by_signals


@click.command(epilog="Example: tidegate-collector health --pop ams1 --interval 1m --out health.pb")
@click.option(
    "--interval", callback=duration_ns, default="1m", show_default=True, help="That a row tells about."
)
@click.option(
    "--count", type=click.IntRange(1), help="End after so many rows.  [default: at SIGTERM or SIGINT]"
)
@row_options
def health(interval: int, count: int | None, rows: RowOptions) -> None:
    """Tell how long tasks waited for a CPU, how much was stolen, and what softirqs took: a row an interval."""
    origin = rows.origin(system_host())
    form = json_form(HOSTS) if rows.as_json else protobuf_form(HOSTS)
    stopped = stopped_by_signals()
    sink = StreamSink(form) if rows.out == STANDARD_OUTPUT else FileSink(rows.out, form)
    written = 0
    try:
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
