"""A real Kafka broker of one node (KRaft) that tests start, stop, kill and restart on the same data.

    broker = Broker(tmp_path / "broker")      # nothing runs yet
    broker.start()                            # returns once it answers, about 5 s
    broker.create_topic("tidegate.sockets", partitions=2)
    Producer(broker.settings())               # PLAINTEXT; broker.settings("ssl"), broker.settings("sasl_ssl")
    broker.kill(); broker.start()             # the same ports, the same data
    broker.close()

In pytest the fixture `kafka` (root conftest.py) is one running broker for the whole session, for tests that
leave it running: name the topics yourself. A test that stops its broker makes its own, by `new_broker`.
"""

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .certificates import Certificates, make_certificates

_T = TypeVar("_T")

USER: Final = "edge"
_LISTENERS: Final = ("plaintext", "ssl", "sasl_ssl", "controller")
_JVM: Final = ("java", "-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_FENCED: Final = (
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
)
_START_SECONDS: Final = 90.0  # on a machine that has better to do; 5 s on an idle one

# Below the ports that the kernel hands to clients (ip_local_port_range), so that they are free again at a restart.
_PORTS: Final = range(20_000, 32_000)

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{address}:{ports[controller]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{address}:{ports[plaintext]},SSL://{address}:{ports[ssl]},\
SASL_SSL://{address}:{ports[sasl_ssl]},CONTROLLER://{address}:{ports[controller]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.enable=false
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=300
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
ssl.keystore.type=PEM
ssl.keystore.location={keys.server}
ssl.truststore.type=PEM
ssl.truststore.location={keys.authority}
listener.name.ssl.ssl.client.auth=required
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
"""


@dataclass(frozen=True, slots=True)
class Jars:
    """Where the broker's jars are."""

    directory: Path

    def command(self, main: str, *arguments: str) -> list[str]:
        """The argument list that runs a class of them."""
        return [*_JVM, "-cp", f"{self.directory.resolve()}/*", main, *arguments]


class Broker:
    """One broker and its data. It ends with the process that started it, also where that is killed.

    Args:
        jars: as `lab/kafka/get-kafka.sh` left them.
        directory: created; data, certificates and the log `broker.log` stand there.
        address: that it listens on, of this network namespace.

    Attributes:
        bootstrap: `address:port` of each listener: `plaintext`, `ssl` (asks for a client certificate),
            `sasl_ssl` (SCRAM-SHA-512; user and password are in `settings`).
        keys: the certificates' files.
        password: of the SCRAM user `USER`, new for each broker.
    """

    def __init__(self, jars: Jars, directory: Path, address: str = "127.0.0.1") -> None:
        directory.mkdir(parents=True)
        self._jars: Final = jars
        self._log: Final = directory / "broker.log"
        self._properties: Final = directory / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.keys: Final[Certificates] = make_certificates(directory / "keys", address)
        self.password: Final = secrets.token_urlsafe(16)
        ports = dict(zip(_LISTENERS, _free_ports(address, len(_LISTENERS)), strict=True))
        self.bootstrap: Final = {name: f"{address}:{port}" for name, port in ports.items()}
        self._properties.write_text(
            _PROPERTIES.format(address=address, ports=ports, data=directory / "data", keys=self.keys)
        )
        self._format()
        self._admin: Final = AdminClient({**self.settings(), "log_level": 0})

    def start(self) -> None:
        """Start it on what data it has; return once it answers.

        Raises:
            RuntimeError: it ended or did not answer in time; the end of its log is told.
        """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._jars.command("kafka.Kafka", str(self._properties))],
                stdout=log,
                stderr=log,
                cwd=self._log.parent,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                if self._admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:  # not yet
                continue
        self.kill()
        raise RuntimeError(f"the broker did not start:\n{self._log.read_text()[-4000:]}")

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it (SIGKILL), and wait. What it acknowledged is in the page cache and stays."""
        self._end(signal.SIGKILL)

    close = kill

    def pause(self) -> None:
        """Let it hang: connections stay, nothing is answered until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def settings(self, listener: str = "plaintext") -> dict[str, str]:
        """What a librdkafka client needs to reach a listener."""
        given = {"bootstrap.servers": self.bootstrap[listener], "security.protocol": listener}
        if listener != "plaintext":
            given["ssl.ca.location"] = str(self.keys.authority)
        if listener == "ssl":
            given |= {
                "ssl.certificate.location": str(self.keys.client),
                "ssl.key.location": str(self.keys.client),
            }
        if listener == "sasl_ssl":
            given |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": USER,
                "sasl.password": self.password,
            }
        return given

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic; `config` is the topic's own, with `_` for the dots."""
        topic = NewTopic(
            name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()}
        )
        _unfenced(lambda: self._admin.create_topics([topic])[name].result(30))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The next offset of each partition: what was produced in all, as long as nothing was compacted."""
        partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        consumer = Consumer({**self.settings(), "group.id": "end-offsets"})
        try:
            bounds = {
                number: partial(consumer.get_watermark_offsets, TopicPartition(topic, number), timeout=10)
                for number in partitions
            }
            return {number: _unfenced(ask)[1] for number, ask in bounds.items()}
        finally:
            consumer.close()

    def _format(self) -> None:
        cluster = subprocess.run(
            self._jars.command("kafka.tools.StorageTool", "random-uuid"),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        scram = f"SCRAM-SHA-512=[name={USER},password={self.password}]"
        subprocess.run(
            self._jars.command(
                "kafka.tools.StorageTool",
                "format",
                "-t",
                cluster,
                "-c",
                str(self._properties),
                "--add-scram",
                scram,
            ),
            check=True,
            capture_output=True,
        )

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _end(self, number: int) -> None:
        self._signal(signal.SIGCONT)
        self._signal(number)
        if self._process is not None:
            self._process.wait(timeout=60)


def _unfenced(ask: Callable[[], _T]) -> _T:
    """Ask again while a busy machine's controller takes its only broker for dead, for want of a heartbeat."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _FENCED or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _free_ports(address: str, count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):  # two brokers seldom want the same
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def _main() -> None:
    """Run a broker until standard input is closed: `python -m tidegate_lab.broker JARS DIRECTORY [TOPIC...]`."""
    jars, directory, *topics = sys.argv[1:]
    broker = Broker(Jars(Path(jars)), Path(directory))
    broker.start()
    for topic in topics:
        broker.create_topic(topic)
    sys.stdout.write(json.dumps(broker.bootstrap) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    broker.stop()


if __name__ == "__main__":
    _main()
