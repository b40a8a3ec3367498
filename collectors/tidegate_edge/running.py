"""The collector's loop: poll, write, count, pause."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from .counters import Counters
from .kafka_options import KafkaOptions, shipped_by
from .options import KernelOptions, RowOptions, RunOptions, system_host
from .schedule import next_slot
from .sockets.arena import Arena
from .sockets.decode import Rows
from .sockets.part import Part
from .sources import open_sources
from .stop import Stopped, never_stopped, stopped_by_signals
from .streams import SOCKET_STREAM
from .totals import print_totals

if TYPE_CHECKING:
    from .ship.kafka import KafkaSink

ONE_POLL: Final = RunOptions(interval=1, jitter=0, max_cpu=100, count=1, metrics=None, out_mib=None)

Polled = Callable[[float], None]
"""Takes how long a poll took, seconds."""


def collect_once(rows: RowOptions, source: KernelOptions) -> None:
    """Poll once; the counters are printed to standard error if something was lost.

    Raises:
        Failure: the sockets can't be read or the rows not written. The counters have been printed.
    """
    _collect(rows, source, None, ONE_POLL, never_stopped, report=False)


def collect(rows: RowOptions, source: KernelOptions, kafka: KafkaOptions, how: RunOptions) -> None:
    """Poll until the count is reached or a signal comes, then print the counters to standard error.

    Raises:
        Failure: the sockets can't be read or the rows not written. The counters have been printed.
    """
    _collect(rows, source, kafka, how, stopped_by_signals(), report=True)


def _collect(
    rows: RowOptions,
    source: KernelOptions,
    kafka: KafkaOptions | None,
    how: RunOptions,
    stopped: Stopped,
    *,
    report: bool,
) -> None:
    pace = how.pace()
    origin = rows.origin(system_host(), source.selection())
    counters = Counters()
    sources = open_sources(source.wanted(), counters, _tell)
    to_kafka = kafka.open_sink(origin, SOCKET_STREAM) if kafka else None
    sink = to_kafka or rows.open_sink(out_mib=how.out_mib)
    arena = Arena()
    slot = 0
    try:
        polled = _served(how, counters, sources.readers, to_kafka)
        start_ns = time.monotonic_ns()
        while not stopped((start_ns + pace.due_ns(slot) - time.monotonic_ns()) / 1e9):
            begun, begun_cpu_ns = time.monotonic(), time.thread_time_ns()
            sink.write(_counted(sources.poll(origin, arena), counters))
            counters.polls += 1
            polled(time.monotonic() - begun)
            if counters.polls == how.count:
                break
            cpu_ns = time.thread_time_ns() - begun_cpu_ns
            following = next_slot(slot, time.monotonic_ns() - start_ns, pace, cpu_ns)
            slot = following.number
            counters.skipped += following.skipped
            counters.spared += following.spared
    finally:
        sink.close()
        sources.close()
        if report or counters.losses:
            print_totals(asdict(counters) | shipped_by(to_kafka), as_json=rows.as_json)


def _counted(parts: Iterator[Part], counters: Counters) -> Iterator[Rows]:
    """The rows of each part; it is counted when the next is asked for, so when its rows are written."""
    for part in parts:
        yield part.rows
        counters.add(part)


def _served(
    how: RunOptions, counters: Counters, readers: Callable[[], tuple[str, ...]], kafka: "KafkaSink | None"
) -> Polled:
    if how.metrics is None:
        return lambda _seconds: None
    # Only where it is asked for: the import takes time and memory.
    from .metrics import Metrics, Numbers  # noqa: PLC0415
    from .poll_metrics import poll_seconds, readers_in_use  # noqa: PLC0415

    seconds = poll_seconds()
    numbers = Numbers(lambda: asdict(counters) | shipped_by(kafka))
    metrics = Metrics(how.metrics, numbers, readers_in_use(readers), seconds)
    _tell(f"metrics: http://{how.metrics[0]}:{metrics.port}/metrics")
    return seconds.observe


def _tell(line: str) -> None:
    click.echo(line, err=True)
