"""`tidegate-collector`: the kernel's TCP sockets as rows, once, on a schedule, or from a capture. Only wires."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from .counters import Counters
from .errors import Failure
from .kafka_options import KafkaOptions, as_counters, kafka_options
from .options import KernelOptions, RowOptions, duration_ns, kernel_options, row_options, system_host
from .schedule import next_slot
from .sockets.arena import Arena
from .sockets.capture import read_capture
from .sockets.netlink import CONNECTED, EVERY
from .sockets.reader import open_reader
from .sockets.rows import make_rows
from .stop import Stopped, never_stopped, stopped_by_signals


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
    collect(rows, source, interval_ns=1, count=1, stopped=never_stopped, report=False)


@commands.command(
    epilog="Example: tidegate-collector run --pop ams1 --fleet fleet.json --interval 1s --out sockets.pb"
)
@row_options
@kernel_options
@kafka_options
@click.option("--interval", callback=duration_ns, default="1s", show_default=True, help="Between two polls.")
@click.option(
    "--count", type=click.IntRange(1), help="End after so many polls.  [default: at SIGTERM or SIGINT]"
)
def run(
    rows: RowOptions, source: KernelOptions, kafka: KafkaOptions, interval: int, count: int | None
) -> None:
    """Poll at whole intervals after the start.

    A poll that is due while another runs is skipped and counted. SIGTERM and SIGINT end the collector after the
    poll that is running; then it prints its counters to standard error.
    """
    collect(
        rows,
        source,
        interval_ns=interval,
        count=count,
        stopped=stopped_by_signals(),
        report=True,
        kafka=kafka,
    )


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


def collect(
    rows: RowOptions,
    source: KernelOptions,
    *,
    interval_ns: int,
    count: int | None,
    stopped: Stopped,
    report: bool,
    kafka: KafkaOptions | None = None,
) -> None:
    """Poll until `count` or `stopped`, and tell what was lost.

    Args:
        rows: whose rows these are and where they go.
        source: what is read of the kernel.
        interval_ns: between two polls, nanoseconds.
        count: polls, or None for no end.
        stopped: the pause between two polls, and whether it was the last.
        report: print the counters in the end, also if nothing was lost.
        kafka: where the rows go instead, if it names a broker.

    Raises:
        Failure: the sockets can't be read or the rows not written. The counters have been printed.
    """
    origin = rows.origin(system_host())
    states = EVERY if source.all_states else CONNECTED
    reader = open_reader(source.reader, source.netns, states=states, tell=_tell)
    to_kafka = kafka.open_sink(origin) if kafka else None
    sink = to_kafka or rows.open_sink()
    arena = Arena()
    counters = Counters()
    start_ns = time.monotonic_ns()
    slot = 0
    try:
        while not stopped((start_ns + slot * interval_ns - time.monotonic_ns()) / 1e9):
            seen = reader.poll(origin, arena, states=states, max_sockets=source.max_sockets)
            sink.write(seen.rows)
            counters.add(seen)
            if counters.polls == count:
                break
            following = next_slot(slot, time.monotonic_ns() - start_ns, interval_ns)
            slot, counters.skipped = following.number, counters.skipped + following.skipped
    finally:
        sink.close()
        reader.close()
        if report or counters.losses:
            more = as_counters(to_kafka.shipped) if to_kafka else {}
            _print_counters(asdict(counters) | more, as_json=rows.as_json)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _print_counters(totals: dict[str, int | str], *, as_json: bool) -> None:
    text = json.dumps(totals) if as_json else ", ".join(f"{name} {total}" for name, total in totals.items())
    click.echo(text, err=True)
