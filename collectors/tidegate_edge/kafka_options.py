"""The command-line options that send rows to Kafka, and what they come to."""

import functools
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from .errors import Failure
from .ship.kafka_config import read_kafka_config
from .ship.spool import Spool
from .sockets.rows import Origin
from .streams import Stream

if TYPE_CHECKING:
    from .ship.kafka import KafkaSink

Command = Callable[..., Any]

_BROKER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Where rows go if a broker is named; as given on the command line."""

    kafka: str | None
    topic: str
    kafka_config: Path | None
    spool: Path
    spool_mib: int

    def open_sink(self, origin: Origin, stream: Stream) -> "KafkaSink | None":
        """The sink of an origin's rows of one kind, or None where no broker is named.

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
        to = Destination(self.topic, origin.host, origin.pop, stream.schema_version, stream.row_length)
        return KafkaSink(self.kafka, to, options, spool, tell=_tell)


def kafka_options(stream: Stream) -> Callable[[Command], Command]:
    """Give a command that makes such rows the argument `kafka`, a `KafkaOptions`."""
    names = [field.name for field in fields(KafkaOptions)]

    def with_options(command: Command) -> Command:
        @functools.wraps(command)
        def with_record(**given: Any) -> Any:  # noqa: ANN401 — click hands over what it has converted
            options = KafkaOptions(**{name: given.pop(name) for name in names})
            return command(**given, kafka=options)

        decorated: Command = with_record
        for option in reversed(_options(stream)):
            decorated = option(decorated)
        return decorated

    return with_options


def _options(stream: Stream) -> tuple[Callable[[Command], Command], ...]:
    return (
        click.option("--kafka", metavar="BROKERS", help="Send rows to these brokers: host:port, by commas."),
        click.option("--topic", default=stream.topic, show_default=True, help="Topic of the rows."),
        click.option(
            "--kafka-config",
            type=click.Path(path_type=Path),
            help="File of librdkafka options, `key=value` a line: TLS, SASL, compression.",
        ),
        click.option(
            "--spool",
            type=click.Path(path_type=Path),
            default=stream.spool,
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


def shipped_by(kafka: "KafkaSink | None") -> dict[str, int | str]:
    """What became of rows, beside the collector's counters; nothing where no broker is named."""
    shipped = asdict(kafka.shipped) if kafka else {}
    return {f"kafka_{name}": value for name, value in shipped.items() if value is not None}


def _tell(line: str) -> None:
    click.echo(line, err=True)
