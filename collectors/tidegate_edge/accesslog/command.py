"""`tidegate-collector accesslog`. Only wires."""

import json
import time
from collections import Counter
from pathlib import Path

import click

from tidegate_edge.errors import Failure
from tidegate_edge.option_types import duration_ns
from tidegate_edge.options import STANDARD_OUTPUT, RowOptions, row_options, system_host
from tidegate_edge.schemas.transfers import TRANSFERS
from tidegate_edge.ship.records import json_form, protobuf_form
from tidegate_edge.ship.sink import FileSink, Sink, StreamSink
from tidegate_edge.sockets.reader import NetlinkReader
from tidegate_edge.stop import stopped_by_signals

from .algorithms import Algorithms
from .follow import Log
from .line import NoTransfer, Transfer, parse
from .position import Positions
from .rows import make_rows


@click.command(
    epilog="Example: tidegate-collector accesslog /var/log/nginx/tidegate.log --follow"
    " --state-dir /var/lib/tidegate --pop ams1 --out transfers.pb"
)
@click.argument("log", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Go on until SIGTERM or SIGINT, over rotations.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), required=True, help="Keeps how far FILE was read."
)
@click.option("--interval", callback=duration_ns, default="1s", show_default=True, help="Between two looks.")
@click.option("--netns", help="The server's network namespace, as `ip netns` names it.  [default: this one]")
@row_options
def accesslog(
    log: Path, follow: bool, state_dir: Path, interval: int, netns: str | None, rows: RowOptions
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
    sink = _open_sink(rows)
    reading = Log(log)
    counted: Counter[str] = Counter(rows=0)
    try:
        reading.resume(positions.load(), time.monotonic_ns())
        pause = 0.0
        while not stopped(pause):
            before = reading.positions
            transfers = _parsed(reading.lines(time.monotonic_ns()), reading.trouble)
            if transfers:
                sink.write([make_rows(transfers, algorithms.of(transfers), origin)])
                counted["rows"] += len(transfers)
            if reading.positions != before:
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
        _report(counted + reading.trouble, as_json=rows.as_json)


def _parsed(lines: list[bytes], trouble: Counter[str]) -> list[Transfer]:
    transfers = []
    for line in lines:
        try:
            transfers.append(parse(line))
        except NoTransfer as why:
            trouble[f"lines: {why}"] += 1
    return transfers


def _open_sink(rows: RowOptions) -> Sink:
    form = json_form(TRANSFERS) if rows.as_json else protobuf_form(TRANSFERS)
    return StreamSink(form) if rows.out == STANDARD_OUTPUT else FileSink(rows.out, form)


def _report(counted: Counter[str], *, as_json: bool) -> None:
    totals = {"rows": counted["rows"], **counted}
    text = json.dumps(totals) if as_json else ", ".join(f"{name} {total}" for name, total in totals.items())
    click.echo(text, err=True)
