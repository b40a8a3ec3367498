"""`tidegate-collector`: the kernel's TCP sockets as rows, once, on a schedule, or from a capture. Only wires."""

import sys
from pathlib import Path

import click
import numpy as np

from .accesslog.command import accesslog
from .check import check
from .errors import Failure
from .health import health
from .kafka_options import KafkaOptions, kafka_options
from .options import KernelOptions, RowOptions, RunOptions, kernel_options, row_options, run_options
from .running import collect, collect_once
from .show.command import show
from .sockets.capture import read_capture
from .sockets.rows import make_rows
from .streams import SOCKET_STREAM


def main() -> None:
    """Run the command line; a failure becomes its message on standard error and its exit code."""
    try:
        commands()
    except Failure as failure:
        click.echo(f"tidegate-collector: {failure.message}", err=True)
        if failure.help:
            click.echo(f"help: {failure.help}", err=True)
        sys.exit(failure.exit_code)


@click.group(epilog="Example: tidegate-collector once --json")
def commands() -> None:
    """Read the kernel's TCP sockets as telemetry rows."""


@commands.command(epilog="Example: tidegate-collector once --pop ams1 --fleet fleet.json --out sockets.pb")
@row_options
@kernel_options
def once(rows: RowOptions, source: KernelOptions) -> None:
    """Poll once: a row for each TCP socket of both families that is or was connected."""
    collect_once(rows, source)


@commands.command(
    epilog="Example: tidegate-collector run --pop ams1 --fleet fleet.json --interval 1s --out sockets.pb"
)
@row_options
@kernel_options
@kafka_options(SOCKET_STREAM)
@run_options
def run(rows: RowOptions, source: KernelOptions, kafka: KafkaOptions, how: RunOptions) -> None:
    """Poll at whole intervals after the start.

    A poll that is due while another runs is skipped and counted. SIGTERM and SIGINT end the collector after the
    poll that is running; then it prints its counters to standard error.
    """
    collect(rows, source, kafka, how)


@commands.command(epilog="Example: tidegate-collector decode sockets.pcap --json --full-addresses")
@click.argument("capture", type=click.Path(path_type=Path))
@row_options
def decode(capture: Path, rows: RowOptions) -> None:
    """Decode a recorded netlink capture: pcap, link type LINUX_NETLINK.

    All of its TCP sockets become rows, listeners too. What is damaged is left out, and then the exit code is 2.
    """
    origin = rows.origin()
    sink = rows.open_sink()
    damaged = 0
    first_at = None
    for datagram in read_capture(capture):
        words = np.frombuffer(datagram.data + bytes(-len(datagram.data) % 4), "<u4")
        batch = make_rows(words, [(0, len(datagram.data))], origin, datagram.observed_at_ns)
        sink.write([batch.rows])
        if batch.damaged or datagram.cut:
            damaged += max(batch.damaged, 1)
            first_at = datagram.at if first_at is None else first_at
    sink.close()
    if damaged:
        raise Failure(f"{capture}: byte {first_at}: damaged messages from this packet on: {damaged} left out")


for _command in (check, show, accesslog, health):
    commands.add_command(_command)
