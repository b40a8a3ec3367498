"""What is assumed of a fleet: every parameter with its default, unit and reason."""

from dataclasses import dataclass, field


def _assumed(default: float, unit: str, what: str) -> float:
    value: float = field(default=default, metadata={"unit": unit, "what": what})
    return value


@dataclass(frozen=True, slots=True)
class Assumed:
    """A fleet's shape and the settings that cost space; the metadata of a field says what it is."""

    hosts_per_pop: float = _assumed(8, "hosts", "edge hosts of a POP")
    sockets_per_host: float = _assumed(10_000, "sockets", "established at any moment")
    interval: float = _assumed(10, "s", "between two polls; the default of the role `collector`")
    sample: float = _assumed(1, "sockets", "one in so many is read (`--sample 1/N`)")
    prefixes_per_pop: float = _assumed(2_000, "prefixes", "client prefixes with enough samples in a window")
    views: float = _assumed(2, "selects", "selects whose windows differ: each closes its own")
    step: float = _assumed(300, "s", "a window")
    kafka_days: float = _assumed(3, "days", "retention; the default of the role `kafka_topics`")
    kafka_replicas: float = _assumed(3, "copies", "the default of the role `kafka_topics`")
    kafka_partitions: float = _assumed(12, "partitions", "the default of the role `kafka_topics`")
    kafka_segment: float = _assumed(1024, "MiB", "a segment is deleted whole; Kafka's own default")
    store_days: float = _assumed(3, "days", "TTL of `socket_samples` in the migrations")
    store_replicas: float = _assumed(2, "copies", "of each shard of ClickHouse")
    store_fill: float = _assumed(0.6, "of a disk", "the rest is for merges and growth")
    windows_days: float = _assumed(30, "days", "TTL of `prefix_windows` in the migrations")
    busy: float = _assumed(0.5, "of a machine", "load at which a machine of the store counts as full")
