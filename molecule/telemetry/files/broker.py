"""Run the laboratory's Kafka broker until SIGTERM.

    broker.py JARS DIRECTORY ADDRESS OUT

OUT is a folder. Once the broker answers there are `broker.json` and `kafka.conf`, what a client needs to reach it by
TLS and SASL, and `broker.pid`, whom to end.
"""

import json
import os
import signal
import sys
from pathlib import Path

from tidegate_lab.broker import Broker, Jars


def main() -> None:
    """Start it, say how it is reached, wait, stop it."""
    jars, directory, address, out = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    (Path(out) / "broker.pid").write_text(f"{os.getpid()}\n")
    broker = Broker(Jars(Path(jars)), Path(directory), address)
    broker.start()
    settings = broker.settings("sasl_ssl")
    client = {key: value for key, value in settings.items() if key != "bootstrap.servers"}
    write(Path(out) / "kafka.conf", "".join(f"{key}={value}\n" for key, value in client.items()))
    write(Path(out) / "broker.json", json.dumps(settings))
    signal.sigwait({signal.SIGTERM})
    broker.close()


def write(path: Path, text: str) -> None:
    """Write a file whole, for its owner alone."""
    aside = path.with_suffix(".new")
    aside.touch(mode=0o600)
    aside.write_text(text)
    aside.rename(path)


if __name__ == "__main__":
    main()
