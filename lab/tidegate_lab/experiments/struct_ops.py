"""BBR that raises its pacing while bytes wait (struct_ops), on a sender whose CPU is taken away.

100 Mbit/s with a round trip of 20 ms. All of the sender is on one CPU: its process, and by receive packet steering
and the pinning of timers also what its kernel does for TCP. The link and the client are on the others.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO, Final

from tidegate_lab.algorithms import RAISE, RAISE_BOUND, WRAPPED, registered
from tidegate_lab.direction import Counters
from tidegate_lab.experiments.on_time import on_time
from tidegate_lab.kernel import inside_namespace
from tidegate_lab.link import End, link
from tidegate_lab.namespaces import namespace, run
from tidegate_lab.sender import PORT, READY, Told
from tidegate_lab.shape import Shape
from tidegate_lab.stall import Stall, stalled

ALGORITHMS: Final = ("bbr", WRAPPED, RAISE, RAISE_BOUND, "cubic")
_SECONDS: Final = 2.5
_OBJECTS: Final = 3
_OBJECT_BYTES: Final = 1_000_000
_PATIENCE_S: Final = 60.0
_SENDER: Final = "198.18.20.2"
_CLIENT: Final = "198.18.21.2"
_DEVICE: Final = "client"
_RATE_BPS: Final = 100_000_000
_DELAY_MS: Final = 10
_RECEIVE_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Condition:
    """Under what a sender sends.

    Attributes:
        on_ms: for which its CPU runs at a stretch, on average.
        off_ms: for which it then stands; 0: it never does.
        buffer: of the link, in bandwidth-delay products.
        loss: of packets to the client.
    """

    on_ms: float = 0
    off_ms: float = 0
    buffer: float = 2
    loss: float = 0


FREE: Final = (Condition(), Condition(buffer=0.5), Condition(loss=0.01))
CONTENDED: Final = (
    Condition(20, 10),
    Condition(15, 15),
    Condition(10, 20),
    Condition(15, 15, buffer=0.5),
    Condition(15, 15, loss=0.01),
)
CONDITIONS: Final = (*FREE, *CONTENDED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One connection without an end, and some objects of 1 MB on connections of their own.

    Attributes:
        condition: under which.
        algorithm: of the sender.
        seed: of the stalls and of the loss.
        mbit_s: goodput of the one without an end.
        seconds: from the request to the last byte, of each object.
        told: what the sender saw of the one without an end.
        stood: share of the time that the sender's CPU stood.
        link: counters of the direction to the client.
    """

    condition: Condition
    algorithm: str
    seed: int
    mbit_s: float
    seconds: Sequence[float]
    told: Told
    stood: float
    link: Counters


@dataclass(frozen=True, slots=True)
class Laboratory:
    """What all cases share.

    Attributes:
        sender: its namespace.
        client: its namespace.
        cpu: of the sender.
        senders: descriptor of the map in which the algorithms tell of their sockets.
    """

    sender: str
    client: str
    cpu: int
    senders: int


def measure(seeds: int) -> list[Outcome]:
    """Run the experiment, three to four minutes for each seed; the algorithms take turns.

    Raises:
        Unavailable: the kernel can't have the algorithms.
        RuntimeError: the machine has one CPU, or there is no clang.
        subprocess.CalledProcessError: not root, or the kernel lacks TUN.
    """
    with laboratory() as made:
        return [
            on_time(
                partial(measure_case, made, condition, ALGORITHMS[(turn + seed) % len(ALGORITHMS)], seed),
                lambda outcome: [outcome.link],
            )
            for seed in range(1, seeds + 1)
            for condition in CONDITIONS
            for turn in range(len(ALGORITHMS))
        ]


@contextmanager
def laboratory() -> Iterator[Laboratory]:
    """Two namespaces, the algorithms, and this process off the sender's CPU, while the block runs.

    Raises:
        Unavailable: the kernel can't have the algorithms.
        RuntimeError: the machine has one CPU.
        subprocess.CalledProcessError: not root.
    """
    cpu, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise RuntimeError("the sender needs a CPU of its own, and there is only one")
    with (
        registered() as senders,
        namespace("sender") as sender,
        namespace("client") as client,
        _affinity(set(others)),
    ):
        yield Laboratory(sender, client, cpu, senders)


@contextmanager
def _affinity(cpus: set[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure_case(made: Laboratory, condition: Condition, algorithm: str, seed: int) -> Outcome:
    """One algorithm under one condition, 4 to 15 s.

    Raises:
        RuntimeError: there is no clang, the sender did not start, or bytes are missing.
        TimeoutError: nothing came for a minute.
        subprocess.CalledProcessError: the kernel lacks TUN.
    """
    path = Shape(rate_bps=_RATE_BPS, delay_ms=_DELAY_MS, loss=condition.loss, seed=seed)
    buffered = round(condition.buffer * path.bandwidth_delay_bytes)
    shape = Shape(_RATE_BPS, _DELAY_MS, condition.loss, buffered, seed)
    near = End(made.sender, _DEVICE, (f"{_SENDER}/32",), (f"{_CLIENT}/32",))
    far = End(made.client, "sender", (f"{_CLIENT}/32",), (f"{_SENDER}/32",))
    taken = stalled(made.cpu, condition.on_ms, condition.off_ms, seed) if condition.off_ms else nullcontext()
    with ExitStack() as stack:
        between = stack.enter_context(link(near, far, shape, Shape(delay_ms=_DELAY_MS)))
        _receive_on(made)
        told = stack.enter_context(_sender(made))
        stall = stack.enter_context(taken)
        mbit_s = _receive_for(made.client, algorithm)
        endless = Told(**json.loads(told.readline()))
        seconds = [_fetch(made.client, algorithm) for _ in range(_OBJECTS)]
        stood = stall.share() if isinstance(stall, Stall) else 0.0
        return Outcome(condition, algorithm, seed, mbit_s, seconds, endless, stood, between.counters()[0])


def _receive_on(made: Laboratory) -> None:
    """Have the sender's acknowledgements taken in on its CPU (Documentation/networking/scaling.rst)."""
    steering = f"/sys/class/net/{_DEVICE}/queues/rx-0/rps_cpus"
    command = f"echo {1 << made.cpu:x} >{steering}"
    run("ip", "netns", "exec", made.sender, "sh", "-c", command)


@contextmanager
def _sender(made: Laboratory) -> Iterator[IO[str]]:
    """What the sender tells, a line for each connection."""
    argv = ["ip", "netns", "exec", made.sender, "chrt", "-f", "40", sys.executable]
    argv += ["-m", "tidegate_lab.sender", str(made.cpu), str(made.senders)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env=environment, pass_fds=[made.senders]
    ) as process:
        try:
            if process.stdout is None or process.stdout.readline() != f"{READY}\n":
                raise RuntimeError("the sender did not start")
            yield process.stdout
        finally:
            process.kill()


def _connected(client: str, algorithm: str, size: int) -> socket.socket:
    with inside_namespace(client):
        connection = socket.socket()
    connection.settimeout(_PATIENCE_S)
    connection.connect((_SENDER, PORT))
    connection.sendall(f"{algorithm} {size}\n".encode())
    return connection


def _receive_for(client: str, algorithm: str) -> float:
    """Goodput, Mbit/s."""
    with _connected(client, algorithm, 0) as connection:
        begin, received = time.monotonic(), 0
        while (passed := time.monotonic() - begin) < _SECONDS:
            received += len(connection.recv(_RECEIVE_BYTES))
    return received * 8 / 1e6 / passed


def _fetch(client: str, algorithm: str) -> float:
    begin = time.monotonic()
    with _connected(client, algorithm, _OBJECT_BYTES) as connection:
        left = _OBJECT_BYTES
        while left:
            received = len(connection.recv(_RECEIVE_BYTES))
            if not received:
                raise RuntimeError(f"{left} bytes of an object over {algorithm} are missing")
            left -= received
    return time.monotonic() - begin
