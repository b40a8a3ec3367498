"""The command-line options that send rows to Kafka, and what they come to."""

import functools
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from .errors import Failure
from .ship.kafka_config import TOPIC, read_kafka_config
from .ship.spool import Spool
from .sockets.rows import Origin

if TYPE_CHECKING:
    from .ship.kafka import KafkaSink, Shipped

_SPOOL: Final = Path("/var/lib/tidegate/spool")
_BROKER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Where rows go if a broker is named; as given on the command line."""

    kafka: str | None
    topic: str
    kafka_config: Path | None
    spool: Path
    spool_mib: int

    def open_sink(self, origin: Origin) -> "KafkaSink | None":
        """The sink of an origin's rows, or None where no broker is named.

        Raises:
            Failure: an option makes no sense, or the spool can't be used.
        """
        if self.kafka is None:
            if self.kafka_config is not None:
                raise Failure("`--kafka-config` without a broker", help="name brokers with `--kafka`")
            return None
        for broker in self.kafka.split(","):
            if not _BROKER.fullmatch(broker):
                raise Failure(
                    f"--kafka: `{broker}` is no broker", help="write `host:port`, separated by commas"
                )
        # Only where it is asked for: librdkafka takes 9 MB.
        from .ship.kafka import KafkaSink  # noqa: PLC0415
        from .ship.kafka_shipper import Destination  # noqa: PLC0415

        options = read_kafka_config(self.kafka_config) if self.kafka_config else {}
        spool = Spool(self.spool, self.spool_mib << 20)
        if spool.pending:
            _tell(f"{self.spool}: {spool.pending} rows of an earlier collector are sent first")
        to = Destination(self.topic, origin.host, origin.pop)
        return KafkaSink(self.kafka, to, options, spool, tell=_tell)


_OPTIONS: Final = (
    click.option("--kafka", metavar="BROKERS", help="Send rows to these brokers: host:port, by commas."),
    click.option("--topic", default=TOPIC, show_default=True, help="Topic of the rows."),
    click.option(
        "--kafka-config",
        type=click.Path(path_type=Path),
        help="File of librdkafka options, `key=value` a line: TLS, SASL, compression.",
    ),
    click.option(
        "--spool",
        type=click.Path(path_type=Path),
        default=_SPOOL,
        show_default=True,
        help="Directory that keeps rows until a broker has them.",
    ),
    click.option(
        "--spool-mib",
        type=click.IntRange(16, 1 << 20),
        default=1024,
        show_default=True,
        help="Bound of it; then the oldest rows are dropped and counted.",
    ),
)


def kafka_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument `kafka`, a `KafkaOptions`."""
    names = [field.name for field in fields(KafkaOptions)]

    @functools.wraps(command)
    def with_record(**given: Any) -> Any:  # noqa: ANN401 — click hands over what it has converted
        options = KafkaOptions(**{name: given.pop(name) for name in names})
        return command(**given, kafka=options)

    decorated: Callable[..., Any] = with_record
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def as_counters(shipped: "Shipped") -> dict[str, int | str]:
    """What became of rows, beside the collector's counters."""
    return {f"kafka_{name}": value for name, value in asdict(shipped).items() if value is not None}


def _tell(line: str) -> None:
    click.echo(line, err=True)
