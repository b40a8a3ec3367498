"""The command `show`: polls, ranks, prints, and again. Only wires."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from ipaddress import ip_network

import click

from tidegate_edge.counters import Counters
from tidegate_edge.option_types import duration_ns
from tidegate_edge.options import KernelOptions, kernel_options
from tidegate_edge.sockets.addresses import DEFAULT, FULL
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.decode import Rows
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sockets.selection import Network
from tidegate_edge.sources import open_sources
from tidegate_edge.stop import Stopped, stopped_by_signals

from .ranking import BY_PREFIX, BY_SOCKET, SORTS, Filter, Line, gather, rank
from .screen import screen, table


def _prefix(_context: click.Context, _option: click.Parameter, value: str | None) -> Network | None:
    try:
        return None if value is None else ip_network(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(epilog="Example: tidegate-collector show --by socket --sort rtt_ms --algorithm bbr")
@kernel_options
@click.option("--by", type=click.Choice((BY_PREFIX, BY_SOCKET)), default=BY_PREFIX, show_default=True)
@click.option("--sort", type=click.Choice(SORTS), default="rate", show_default=True, help="Greatest first.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Lines.")
@click.option("--prefix", callback=_prefix, help="Only sockets with a remote address in it.")
@click.option("--port", type=click.IntRange(0, 0xFFFF), help="Only sockets with it on either side.")
@click.option("--algorithm", help="Only sockets with this congestion control.")
@click.option("--interval", callback=duration_ns, default="1s", show_default=True, help="Between two polls.")
@click.option("--full-addresses", is_flag=True, help="Show addresses whole, not cut to /24 and /56.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, and end.")
def show(
    source: KernelOptions,
    by: str,
    sort: str,
    limit: int,
    prefix: Network | None,
    port: int | None,
    algorithm: str | None,
    interval: int,
    full_addresses: bool,
    as_json: bool,
) -> None:
    """Show who is sent how much, and how: a table that is drawn anew until Ctrl-C.

    Where standard output is no terminal, and with --json, one table of two polls is printed.
    """
    shown = Filter(prefix, port, algorithm)
    cut = FULL if full_addresses else DEFAULT
    stopped = stopped_by_signals()
    live = sys.stdout.isatty() and not as_json
    before: Rows | None = None
    for now in _polled(source, stopped, interval):
        if before is not None:
            lines = rank(before, now[shown.kept(now)], by, cut, sort, limit)
            _print(lines, len(now), as_json=as_json, live=live)
            if not live:
                break
        before = now


def _polled(source: KernelOptions, stopped: Stopped, interval_ns: int) -> Iterator[Rows]:
    """The rows of a poll after the other, with whole addresses: they are cut when they are shown."""
    origin = Origin("", "", FULL, selection=source.selection())
    sources = open_sources(source.wanted(), Counters(), lambda line: click.echo(line, err=True))
    arena = Arena()
    try:
        while True:
            yield gather(part.rows for part in sources.poll(origin, arena))
            if stopped(interval_ns / 1e9):
                return
    finally:
        sources.close()


def _print(lines: list[Line], sockets: int, *, as_json: bool, live: bool) -> None:
    if as_json:
        click.echo(json.dumps([asdict(line) for line in lines]))
    elif live:
        size = shutil.get_terminal_size()
        head = f"{sockets} sockets; Ctrl-C ends"
        sys.stdout.write(screen(head, lines, size.columns, size.lines))
        sys.stdout.flush()
    else:
        click.echo("\n".join(table(lines)))
