"""Timed HTTP GETs, each on a connection of its own, from a client's namespace.

As a program, `python -m tidegate_lab.transfers URL COUNT PAUSE_S`, it is the client: one JSON object a line for
every transfer as it completes. The functions start that program inside a namespace and read what it says.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from typing import IO
from urllib.parse import urlsplit

_STALLED_S = 60  # a transfer that receives nothing for so long has failed


@dataclass(frozen=True, slots=True)
class Transfer:
    """One object received whole; `seconds` from the start of the handshake to the last byte."""

    started_at: float  # Unix time
    seconds: float
    size: int  # bytes of the body


@dataclass(frozen=True, slots=True)
class Client:
    """One client that fetches `url` again and again, from the namespace it is in.

    Args:
        namespace: its name.
        url: `http://HOST[:PORT]/PATH`.
        count: transfers, one after the other; 0 goes on until stopped.
        pause_s: seconds between the end of one and the start of the next.
    """

    namespace: str
    url: str
    count: int = 0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Completion times in seconds; 10th percentile, median and 90th by the inclusive method."""

    transfers: int
    p10_s: float
    median_s: float
    p90_s: float


def get(url: str) -> Transfer:
    """Fetch one object on a new connection.

    Raises:
        OSError: no connection, or nothing came for a minute.
        http.client.HTTPException: the answer was cut, or was not 200.
    """
    parts = urlsplit(url)
    started_at, start = time.time(), time.monotonic()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_STALLED_S)
    # Closed from here, as browsers do: a server that closes is in FIN_WAIT1 while it still sends.
    with closing(connection):
        connection.request("GET", parts.path)
        response = connection.getresponse()
        body = response.read()
        seconds = time.monotonic() - start
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"{url}: {response.status} {response.reason}")
    return Transfer(started_at, seconds, len(body))


@dataclass(frozen=True, slots=True)
class Running:
    """Clients at work."""

    _started: Sequence[tuple[Client, subprocess.Popen[bytes], IO[bytes]]]

    def completed(self) -> list[list[Transfer]]:
        """The transfers that each client completed so far, in the order of the clients.

        Raises:
            subprocess.CalledProcessError: a client failed; its reason is on standard error.
        """
        for client, process, _ in self._started:
            if process.poll():
                raise subprocess.CalledProcessError(process.returncode, f"transfers of {client.url}")
        return [_read(output) for _, _, output in self._started]

    def wait(self) -> None:
        """Until each client has made its `count` transfers, or failed."""
        for _, process, _ in self._started:
            process.wait()


@contextmanager
def fetching(clients: Sequence[Client]) -> Iterator[Running]:
    """Run the clients at the same time, at most as long as the block runs."""
    with ExitStack() as stack:
        yield Running([(client, *_start(stack, client)) for client in clients])


def fetch(clients: Sequence[Client]) -> list[list[Transfer]]:
    """Run the clients at the same time until each has made its `count` transfers.

    Returns:
        The transfers of each client, in the order of `clients`.

    Raises:
        subprocess.CalledProcessError: a client failed; its reason is on standard error.
    """
    with fetching(clients) as running:
        running.wait()
        return running.completed()


def summary(transfers: Iterable[Transfer]) -> Summary:
    """The completion times of two or more transfers.

    Raises:
        statistics.StatisticsError: there are fewer than two.
    """
    seconds = [transfer.seconds for transfer in transfers]
    tenths = statistics.quantiles(seconds, n=10, method="inclusive")
    return Summary(len(seconds), tenths[0], statistics.median(seconds), tenths[-1])


def _start(stack: ExitStack, client: Client) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a client that is ended when `stack` is, and the file that it writes to."""
    output = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    argv = ["ip", "netns", "exec", client.namespace, sys.executable, "-m", "tidegate_lab.transfers"]
    argv += [client.url, str(client.count), str(client.pause_s)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = stack.enter_context(subprocess.Popen(argv, stdout=output, env=environment))
    stack.callback(process.kill)  # comes before the wait of Popen's own exit
    return process, output


def _read(output: IO[bytes]) -> list[Transfer]:
    """The transfers in whole lines; the last may be half written."""
    # Not read(): the client writes at the file's position, which is one for both processes.
    written = os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0)
    return [
        Transfer(**json.loads(line)) for line in written.splitlines(keepends=True) if line.endswith(b"\n")
    ]


def main(url: str, transfers: str, pause_s: str) -> None:
    """Fetch `url` the given number of times, 0 without end, and print each transfer."""
    for done in count(1):
        print(json.dumps(asdict(get(url))), flush=True)
        if done == int(transfers):
            return
        time.sleep(float(pause_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
