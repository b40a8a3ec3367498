"""`tidegate-collector accesslog`. Only wires."""

import time
from collections import Counter
from pathlib import Path

import click

from tidegate_edge.errors import Failure
from tidegate_edge.kafka_options import KafkaOptions, kafka_options, shipped_by
from tidegate_edge.option_types import duration_ns
from tidegate_edge.options import METRICS, OUT_MIB, RowOptions, row_options, system_host
from tidegate_edge.sockets.reader import NetlinkReader
from tidegate_edge.stop import stopped_by_signals
from tidegate_edge.streams import TRANSFER_STREAM
from tidegate_edge.totals import print_totals, serve_totals

from .algorithms import Algorithms
from .follow import Log
from .line import NoTransfer, Transfer, parse
from .position import Positions
from .rows import make_rows


@click.command(
    epilog="Example: tidegate-collector accesslog /var/log/nginx/tidegate.log --follow"
    " --state-dir /var/lib/tidegate --pop ams1 --kafka kafka1.example:9093 --kafka-config /etc/tidegate/kafka.conf"
)
@click.argument("log", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Go on until SIGTERM or SIGINT, over rotations.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), required=True, help="Keeps how far FILE was read."
)
@click.option("--interval", callback=duration_ns, default="1s", show_default=True, help="Between two looks.")
@click.option("--netns", help="The server's network namespace, as `ip netns` names it.  [default: this one]")
@row_options
@kafka_options(TRANSFER_STREAM)
@METRICS
@OUT_MIB
def accesslog(
    log: Path,
    follow: bool,
    state_dir: Path,
    interval: int,
    netns: str | None,
    rows: RowOptions,
    kafka: KafkaOptions,
    metrics: tuple[str, int] | None,
    out_mib: int,
) -> None:
    """Read transfers from the server's access log: a row for each line of collectors/nginx/tidegate_log.conf.

    Reading goes on where it ended. Every line is delivered at least once, and twice only after a crash;
    host, finished_at_ns, connection and connection_requests of the two rows are then the same.
    """
    if not follow and not log.is_file():
        raise Failure(f"{log}: no such file, or not a regular one")
    origin = rows.origin(system_host())
    algorithms = Algorithms(NetlinkReader(netns))
    stopped = stopped_by_signals()
    positions = Positions(state_dir, log)
    to_kafka = kafka.open_sink(origin, TRANSFER_STREAM)
    sink = to_kafka or rows.open_sink(TRANSFER_STREAM, out_mib)
    reading = Log(log)
    read = 0

    def totals() -> dict[str, int | str]:
        return {"rows": read, **shipped_by(to_kafka)}

    try:
        serve_totals(metrics, totals, lambda: dict(reading.trouble))
        reading.resume(positions.load(), time.monotonic_ns())
        pause = 0.0
        while not stopped(pause):
            before = reading.positions
            transfers = _parsed(reading.lines(time.monotonic_ns()), reading.trouble)
            if transfers:
                sink.write([make_rows(transfers, algorithms.of(transfers), origin)])
                read += len(transfers)
            if reading.positions != before:
                sink.sync()  # before the log's lines are passed for good
                positions.save(reading.positions)
                pause = 0.0
            elif follow:
                pause = interval / 1e9
            else:
                break
    finally:
        reading.close()
        sink.close()
        positions.close()
        print_totals({**totals(), **reading.trouble}, as_json=rows.as_json)


def _parsed(lines: list[bytes], trouble: Counter[str]) -> list[Transfer]:
    transfers = []
    for line in lines:
        try:
            transfers.append(parse(line))
        except NoTransfer as why:
            trouble[f"lines: {why}"] += 1
    return transfers
