"""`tidegate ingest`."""

import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

import click

from tidegate.commands.options import JSON
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import print_json, progress, status, warning

if TYPE_CHECKING:
    from tidegate.telemetry.kafka_ingest import KafkaReport

_TOPIC: Final = "kafka://"


@click.command("ingest")
@click.argument("sources", nargs=-1, required=True, metavar="FILE... | kafka://HOST:PORT,.../TOPIC")
@click.option(
    "--follow/--until-end", help="Wait for further messages, or end where the topic ends now (default)."
)
@click.option(
    "--kafka-config",
    type=click.Path(path_type=Path),
    help="File of librdkafka's settings, key=value: TLS, SASL. Only its owner may read it where it holds a secret.",
)
@JSON
@pass_settings
def command(
    settings: Settings, sources: tuple[str, ...], follow: bool, kafka_config: Path | None, as_json: bool
) -> None:
    """Load telemetry: rows of the collector, M-Lab's archives, or a Kafka topic. Loading again adds nothing.

    \b
    tidegate ingest ams1.pb fra2.pb
    tidegate ingest --follow kafka://broker1.example.net:9093/tidegate.sockets
    """
    topics = [source for source in sources if source.startswith(_TOPIC)]
    if topics and len(sources) > 1:
        raise click.UsageError("load one Kafka topic at a time, and no files with it")
    if not topics and (follow or kafka_config):
        raise click.UsageError("--follow and --kafka-config are of Kafka topics")
    if topics:
        _ingest_topic(settings, topics[0], kafka_config, follow=follow, as_json=as_json)
    else:
        _ingest_files(settings, [Path(source) for source in sources], as_json=as_json)


def _ingest_files(settings: Settings, files: list[Path], *, as_json: bool) -> None:
    from tidegate.telemetry.ingest import ingest_file  # noqa: PLC0415 - a policy author has no store installed

    reports = []
    with opened(settings) as client:
        for path in files:
            with progress(f"loading {path.name}") as step:
                reports.append(ingest_file(client, path, on_progress=step))
    if as_json:
        print_json([{**asdict(report), "path": str(report.path)} for report in reports])
    else:
        for report in reports:
            known = report.rows - report.added
            click.echo(f"{report.path}: {report.added} rows added, {known} known{_left(report.left_out)}")


def _ingest_topic(
    settings: Settings, address: str, config: Path | None, *, follow: bool, as_json: bool
) -> None:
    from tidegate.telemetry.kafka_address import parse_topic, read_settings  # noqa: PLC0415
    from tidegate.telemetry.kafka_consumer import open_topic  # noqa: PLC0415
    from tidegate.telemetry.kafka_ingest import ingest_topic  # noqa: PLC0415

    warned: dict[str, int] = {}

    def loaded(so_far: "KafkaReport") -> None:
        update(f"{topic.name}: {so_far.rows} rows")
        for what, count in _concerns(so_far).items() if follow else ():
            # Each time that it has doubled: however long it lasts, a log holds some lines of it.
            if count >= max(1, 2 * warned.get(what, 0)):
                warned[what] = count
                warning(f"{topic.name}: {count} {what}")

    topic = parse_topic(address)
    of_client = read_settings(config) if config else {}
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with opened(settings) as client, open_topic(topic, of_client) as reader, status(topic.name) as update:
        report = ingest_topic(client, reader, follow=follow, stopped=stop.is_set, on_progress=loaded)
    if as_json:
        # asdict() counts a Counter's pairs.
        print_json({**asdict(report), "left_out": dict(report.left_out)})
    else:
        further = {
            "of them repeated after a crash": report.repeated,
            "more that a host sent again, not loaded again": report.sent_again,
            **_concerns(report),
        }
        told = "".join(f", {count} {what}" for what, count in further.items() if count)
        click.echo(f"{address}: {report.rows} rows of {report.messages} messages{told}")


def _concerns(report: "KafkaReport") -> dict[str, int]:
    """What an operator should look into; with --follow it is told when it happens."""
    return {
        "messages without a number, which would be loaded again": report.unnumbered,
        "messages of a spool whose numbers went back": report.gone_back,
        "messages lost: Kafka deleted them unread": report.lost,
        **{f"left out: {reason}": count for reason, count in report.left_out.items()},
    }


def _left(left_out: Mapping[str, int]) -> str:
    return "".join(f", {count} left out: {reason}" for reason, count in left_out.items())
