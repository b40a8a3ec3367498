"""A link between two namespaces: an emulator process, and the addresses and routes at its two ends."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any, Final

from tidegate_lab.direction import Counters
from tidegate_lab.namespaces import configure
from tidegate_lab.shape import Shape

_ANSWER_S: Final = 60


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link.

    Args:
        namespace: its name.
        device: the TUN device to create in it.
        addresses: with prefix length.
        routes: what is reached through the link, each as `ip route add` takes it, without the device: a
            destination, with options where wanted (`192.0.2.0/24 congctl bbr`).
    """

    namespace: str
    device: str
    addresses: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A running link."""

    _emulator: subprocess.Popen[str]

    def counters(self) -> tuple[Counters, Counters]:
        """The emulator's counters so far: forward, reverse.

        Raises:
            RuntimeError: the emulator has ended.
        """
        self._emulator.send_signal(signal.SIGUSR1)
        line = _line(self._emulator)
        if not line:
            raise RuntimeError(f"the link's emulator has ended with code {self._emulator.wait()}")
        counters: dict[str, Any] = json.loads(line)
        return Counters(**counters["forward"]), Counters(**counters["reverse"])


@contextmanager
def link(near: End, far: End, forward: Shape, reverse: Shape) -> Iterator[Link]:
    """A link from `near` to `far`, up while the block runs.

    Args:
        near: where `forward` starts.
        far: where `reverse` starts.
        forward: what happens to packets from near to far.
        reverse: what happens to packets from far to near.

    Raises:
        RuntimeError: the emulator did not start; its reason is on standard error.
        subprocess.CalledProcessError: an address or a route was refused.
    """
    description = {
        "owner": os.getpid(),
        "forward": {"namespace": near.namespace, "device": near.device, "shape": asdict(forward)},
        "reverse": {"namespace": far.namespace, "device": far.device, "shape": asdict(reverse)},
    }
    argv = ["chrt", "-f", "50", sys.executable, "-m", "tidegate_lab.emulator", json.dumps(description)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as emulator:
        try:
            if _line(emulator) != "ready\n":
                raise RuntimeError(f"the link's emulator ended with code {emulator.wait()}")
            for end in (near, far):
                configure(end.namespace, _commands(end))
            yield Link(emulator)
        finally:
            emulator.terminate()
            with _killed_unless_soon(emulator):
                emulator.communicate()


def _commands(end: End) -> list[str]:
    # A TUN device drops what its queue of 500 cannot take; the queue that counts is the emulator's.
    return [
        f"link set {end.device} mtu 1500 txqueuelen 10000 up",
        *(f"address add {address} dev {end.device}" for address in end.addresses),
        *(f"route add {route} dev {end.device}" for route in end.routes),
    ]


def _line(emulator: subprocess.Popen[str]) -> str:
    """The next line that it writes; none where it ends before."""
    with _killed_unless_soon(emulator):
        return _output(emulator).readline()


@contextmanager
def _killed_unless_soon(emulator: subprocess.Popen[str]) -> Iterator[None]:
    """No wait for the emulator is without end: it is killed where the block takes longer than it may."""
    over = threading.Timer(_ANSWER_S, emulator.kill)
    over.start()
    try:
        yield
    finally:
        over.cancel()


def _output(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise TypeError("started without a pipe")
    return process.stdout
