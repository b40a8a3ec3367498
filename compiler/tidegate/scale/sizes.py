"""From what is assumed and what is measured to what a fleet takes: arithmetic only."""

import math
from dataclasses import dataclass
from typing import Final

from tidegate.scale.assumed import Assumed
from tidegate.scale.measured import Measurements

DAY_S: Final = 86_400
MIB: Final = 2**20
HISTORIES: Final = 2  # of a view: the last, and the one that it was made from


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the telemetry of `pops` POPs takes; bytes with all copies, rates over the whole fleet.

    `ingest`, `closing` and `selecting` are seconds that one machine of the measured class works for each step.
    """

    pops: int
    rows_per_second: float
    raw_bytes_per_second: float
    wire_bytes_per_second: float
    kafka_bytes: float
    store_bytes: float
    windows_bytes: float
    ingest: float
    closing: float
    selecting: float
    machines: int


@dataclass(frozen=True, slots=True)
class Host:
    """What the collector takes on one host: shares of one processor, and bytes per second to Kafka."""

    bpf: float
    netlink: float
    shipping: float
    wire_bytes_per_second: float


def sizes(pops: int, assumed: Assumed, measured: Measurements) -> Sizes:
    """What so many POPs take.

    Samples are removed by whole days (`ttl_only_drop_parts`, partitions of a day), so up to a day more than the
    TTL is held; in Kafka, up to a segment more of each partition.
    """
    rows = pops * assumed.hosts_per_pop * _rows_per_host(assumed)
    wire = rows * measured["wire_row_bytes"]
    kafka = wire * DAY_S * assumed.kafka_days + assumed.kafka_partitions * assumed.kafka_segment * MIB
    samples = rows * DAY_S * (assumed.store_days + 1) * measured["rest_row_bytes"]
    per_step = pops * assumed.prefixes_per_pop * assumed.views
    windows = per_step * DAY_S / assumed.step * assumed.windows_days * measured["window_row_bytes"]
    histories = per_step * HISTORIES * measured["history_row_bytes"]
    ingest = rows * assumed.step / measured["ingest_rows_per_second"]
    closing = (
        rows * assumed.step * assumed.views * measured["close_us"] + per_step * measured["carry_us"]
    ) / 1e6
    selecting = per_step * measured["select_us"] / 1e6
    return Sizes(
        pops=pops,
        rows_per_second=rows,
        raw_bytes_per_second=rows * measured["row_bytes"],
        wire_bytes_per_second=wire,
        kafka_bytes=kafka * assumed.kafka_replicas,
        store_bytes=samples * assumed.store_replicas / assumed.store_fill,
        windows_bytes=(windows + histories) * assumed.store_replicas / assumed.store_fill,
        ingest=ingest,
        closing=closing,
        selecting=selecting,
        machines=math.ceil((ingest + closing + selecting) / assumed.step / assumed.busy),
    )


def host(assumed: Assumed, measured: Measurements) -> Host:
    """What one host takes. Sampling saves the row and its sending, not the walk: that is counted in full."""
    walked = assumed.sockets_per_host / assumed.interval / 1e6
    rows = _rows_per_host(assumed)
    return Host(
        bpf=walked * measured["bpf_us"],
        netlink=walked * measured["netlink_us"],
        shipping=rows / 1e6 * measured["ship_us"],
        wire_bytes_per_second=rows * measured["wire_row_bytes"],
    )


def _rows_per_host(assumed: Assumed) -> float:
    return assumed.sockets_per_host / assumed.interval / assumed.sample
