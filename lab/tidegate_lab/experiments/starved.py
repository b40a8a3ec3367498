"""What a sender that is short of CPU does to CUBIC and BBR, and which connections show the signature of it.

A whole kernel is the sender, stopped and continued as a hypervisor does it: stopping a process would leave the
kernel's timers running. 100 Mbit/s, a round trip of 20 ms.
"""

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate_lab.experiments.claim import Claim
from tidegate_lab.guest import ADDRESS, PORT
from tidegate_lab.link import End, link
from tidegate_lab.namespaces import namespace
from tidegate_lab.shape import Shape
from tidegate_lab.uml import Guest, guest

_SECONDS: Final = 5.0
_ANSWER_S: Final = 60
_CLIENT: Final = "198.18.21.2"
_DELAY_MS: Final = 10
_BUFFERED: Final = 2  # bandwidth-delay products
_LEAST_BUFFER: Final = 30_000
_WAIT: Final = f"""
import socket, sys, time
connection = socket.create_connection(("{ADDRESS}", {PORT}))
connection.sendall(sys.argv[1].encode())
until, total = time.monotonic() + float(sys.argv[2]), 0
connection.settimeout(1)
while time.monotonic() < until:
    try:
        total += len(connection.recv(1 << 18))
    except TimeoutError:
        pass
print(total)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One connection.

    Attributes:
        algorithm: its congestion control.
        on_ms: for which the sender's kernel runs at a stretch.
        off_ms: for which it then stands; 0: it never does.
        loss: of packets to the client.
        mbit: rate of the link, Mbit/s.
        manner: `all`: bytes as fast as they go; `some`: 20 kB each 20 ms.
    """

    algorithm: str
    on_ms: float = 0
    off_ms: float = 0
    loss: float = 0
    mbit: int = 100
    manner: str = "all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        case: which.
        mbit_s: goodput.
        samples: looks of the sender at its socket.
        judged: those that could show the signature.
        starved: those that did.
        share: median of bytes in flight over bandwidth x min_rtt; None: not BBR.
    """

    case: Case
    mbit_s: float
    samples: int
    judged: int
    starved: int
    share: float | None


_SLICES: Final = ((0, 0), (28.5, 1.5), (27, 3), (24, 6), (20, 10), (15, 15), (10, 20))
SLICED: Final = tuple(Case(algorithm, *slices) for slices in _SLICES for algorithm in ("cubic", "bbr"))
HEALTHY: Final = (
    Case("bbr", loss=0.01),
    Case("bbr", loss=0.03),
    Case("bbr", mbit=20),
    Case("bbr", mbit=2),
    Case("bbr", mbit=2, loss=0.03),
    Case("bbr", manner="some"),
)


def measure(package: Path) -> list[Outcome]:
    """Run the experiment, about 2 minutes.

    Raises:
        RuntimeError: user-mode-linux is not in `package`, or does not start.
        subprocess.CalledProcessError: not root, or the kernel lacks TUN.
    """
    with namespace("sender") as sender, namespace("client") as client, guest(sender, package) as kernel:
        return [_measured(case, sender, client, kernel) for case in (*SLICED, *HEALTHY)]


def _measured(case: Case, sender: str, client: str, kernel: Guest) -> Outcome:
    near = End(sender, "client", (), (f"{_CLIENT}/32",))
    far = End(client, "sender", (f"{_CLIENT}/32",), (f"{ADDRESS}/32",))
    path = Shape(rate_bps=case.mbit * 10**6, delay_ms=_DELAY_MS, loss=case.loss)
    shape = replace(path, buffer_bytes=max(_BUFFERED * path.bandwidth_delay_bytes, _LEAST_BUFFER))
    with link(near, far, shape, Shape(delay_ms=_DELAY_MS)), kernel.sliced(case.on_ms, case.off_ms):
        begin = len(kernel.samples())
        argv = ["ip", "netns", "exec", client, sys.executable, "-c", _WAIT]
        argv += [f"{case.algorithm} {case.manner}\n", str(_SECONDS)]
        received = _received(argv)
        samples = kernel.samples()[begin:]
    shares = [each.share for each in samples if each.share is not None]
    return Outcome(
        case,
        received * 8 / 1e6 / _SECONDS,
        len(samples),
        sum(each.judged for each in samples),
        sum(each.starved for each in samples),
        statistics.median(shares) if shares else None,
    )


def _received(argv: Sequence[str]) -> int:
    try:
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=_ANSWER_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the guest did not answer within {_ANSWER_S} s") from error
    return int(done.stdout)


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """Orderings and ratios, never absolute rates."""
    by_case = {one.case: one for one in outcomes}
    cubic, bbr = ([by_case[case] for case in SLICED if case.algorithm == name] for name in ("cubic", "bbr"))
    healthy = [bbr[0], *(by_case[case] for case in HEALTHY)]
    return [
        Claim(
            "a sender that never stands gives BBR at least 0.7 of CUBIC's goodput",
            bbr[0].mbit_s >= 0.7 * cubic[0].mbit_s,
        ),
        Claim(
            "one that stands two thirds of the time gives BBR less than a fifth of CUBIC's",
            bbr[-1].mbit_s < 0.2 * cubic[-1].mbit_s,
        ),
        Claim(
            "healthy BBR shows the signature in less than a twentieth of its samples",
            all(20 * one.starved < max(one.judged, 20) for one in healthy),
        ),
        Claim(
            "BBR on a sender that stands half of the time or more shows it in a fifth or more",
            all(one.judged and 5 * one.starved >= one.judged for one in bbr[-2:]),
        ),
    ]
