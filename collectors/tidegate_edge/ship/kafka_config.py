"""The file with the options of a Kafka client, secrets among them: librdkafka's names, `key=value` a line."""

import os
import stat
from pathlib import Path
from typing import Final

from tidegate_edge.errors import Failure

_MAX_BYTES: Final = 1 << 16

# What loses no row depends on, and what would run code of others.
_OURS: Final = frozenset(
    {
        "acks",
        "bootstrap.servers",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "message.send.max.retries",
        "message.timeout.ms",
        "metadata.broker.list",
        "plugin.library.paths",
        "request.required.acks",
        "retries",
        "transactional.id",
    }
)
_SECRET: Final = ("password", "secret", "key.pem", "oauthbearer.config")


def read_kafka_config(path: Path) -> dict[str, str]:
    """The options in a file; empty lines and lines that begin with `#` mean nothing.

    Raises:
        Failure: it can't be read, a line is no option, an option is the collector's own, or the file holds a secret
            and others than its owner and group may read it. No message tells a value.
    """
    try:
        with path.open("rb") as file:
            others = os.fstat(file.fileno()).st_mode & (stat.S_IRWXO | stat.S_IWGRP)
            text = file.read(_MAX_BYTES + 1).decode()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: byte {error.start}: not UTF-8") from error
    if len(text) > _MAX_BYTES:
        raise Failure(f"{path}: longer than {_MAX_BYTES} bytes")
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not key:
            raise Failure(
                f"{path}:{number}: not an option", help="write `key=value`, with librdkafka's names"
            )
        if key in _OURS:
            raise Failure(f"{path}:{number}: `{key}` is not for this file", help="remove the line")
        if key in options:
            raise Failure(f"{path}:{number}: `{key}` stands there twice", help="remove one of the lines")
        options[key] = value
    secrets = sorted(key for key in options if any(mark in key for mark in _SECRET))
    if secrets and others:
        what = f"{path}: it holds `{secrets[0]}`, and others than its owner and group may read or change it"
        raise Failure(what, help=f"`chmod o-rwx,g-w {path}`")
    return options
