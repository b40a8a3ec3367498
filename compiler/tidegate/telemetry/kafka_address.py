"""The address of a Kafka topic, and the client's settings from a file: never a secret on the command line."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate.errors import Failure
from tidegate.files import read_text

SCHEME: Final = "kafka://"
_FORM: Final = "write kafka://HOST:PORT,HOST:PORT/TOPIC"
_BROKER: Final = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")  # Kafka's own rule, TopicNames
_SECRETS: Final = re.compile(r"password|secret|ssl\.key\.pem|oauthbearer\.config|sasl\.jaas")
_READABLE_BY_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH
_MAX_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and the brokers to begin at, as librdkafka's `bootstrap.servers` takes them."""

    brokers: str
    name: str


def parse_topic(address: str) -> Topic:
    """What kafka://HOST:PORT,HOST:PORT/TOPIC names.

    Raises:
        Failure: not of this form, which leaves no place for a password.
    """
    brokers, _, name = address.removeprefix(SCHEME).partition("/")
    if not all(_BROKER.fullmatch(broker) for broker in brokers.split(",")):
        raise Failure("the brokers of a Kafka address are not HOST:PORT", help=_FORM)
    if not _TOPIC.fullmatch(name):
        raise Failure(f"`{name}` is not the name of a Kafka topic", help=_FORM)
    return Topic(brokers, name)


def read_settings(path: Path) -> dict[str, str]:
    """Settings of librdkafka, one `key=value` a line; `#` begins a comment line.

    Raises:
        Failure: unreadable, a line without `=`, or a secret in a file that others than its owner can read.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(read_text(path, max_bytes=_MAX_BYTES).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if not equals:
            # The line is not repeated: it may be a secret.
            raise Failure(f"{path}: line {number}: not of the form key=value")
        settings[key.strip()] = value.strip()
    if any(_SECRETS.search(key) for key in settings) and path.stat().st_mode & _READABLE_BY_OTHERS:
        raise Failure(f"{path}: holds a secret, and others can read it", help=f"chmod 600 {path}")
    return settings
