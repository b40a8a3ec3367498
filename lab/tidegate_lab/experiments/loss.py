"""What random loss on a client's link does to the completion times of CUBIC and BBR.

3 MB objects over 50 Mbit/s with a round trip of 50 ms and a buffer of one bandwidth-delay product. The two
algorithms run at the same time on a link each, so that whatever disturbs the machine disturbs both.
"""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Final

from tidegate_lab.direction import Counters
from tidegate_lab.experiments.claim import Claim
from tidegate_lab.experiments.on_time import on_time, punctual
from tidegate_lab.link import End, Link, link
from tidegate_lab.namespaces import namespace
from tidegate_lab.service import service
from tidegate_lab.shape import Shape
from tidegate_lab.transfers import Client, Summary, fetch, summary

_SIZE_BYTES: Final = 3_000_000
_LOSSES: Final = (0.0, 0.01)
_ALGORITHMS: Final = ("cubic", "bbr")
_TRANSFERS: Final = 4
_PORT: Final = 8080
_SERVER, _CLIENT = "198.51.100.1", "192.0.2.1"
_CLEAN: Final = Shape(rate_bps=50_000_000, delay_ms=25)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One algorithm on one link; `counters` are those of the direction towards the client."""

    loss: float
    algorithm: str
    times: Summary
    counters: Counters


def measure() -> list[Outcome]:
    """Run the experiment, about 30 seconds, and longer where a link was late.

    Raises:
        subprocess.CalledProcessError: not root, or the kernel lacks TUN, CUBIC or BBR.
    """
    return [
        outcome
        for loss in _LOSSES
        for outcome in on_time(partial(_side_by_side, loss), lambda both: [each.counters for each in both])
    ]


def _side_by_side(loss: float) -> list[Outcome]:
    towards_client = replace(_CLEAN, loss=loss, buffer_bytes=_CLEAN.bandwidth_delay_bytes)
    with ExitStack() as stack:
        objects = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (objects / "object").write_bytes(bytes(_SIZE_BYTES))
        links: list[Link] = []
        clients: list[Client] = []
        for algorithm in _ALGORITHMS:
            server = stack.enter_context(namespace(f"{algorithm}-server"))
            client = stack.enter_context(namespace(f"{algorithm}-client"))
            near = End(server, "client", (f"{_SERVER}/32",), (f"{_CLIENT}/32 congctl {algorithm}",))
            far = End(client, "server", (f"{_CLIENT}/32",), (f"{_SERVER}/32",))
            links.append(stack.enter_context(link(near, far, towards_client, Shape(delay_ms=25))))
            argv = (sys.executable, "-m", "http.server", str(_PORT), "--directory", str(objects))
            stack.enter_context(service(server, *argv, port=_PORT))
            clients.append(Client(client, f"http://{_SERVER}:{_PORT}/object", _TRANSFERS))
        transfers = fetch(clients)
        return [
            Outcome(loss, algorithm, summary(times), running.counters()[0])
            for algorithm, times, running in zip(_ALGORITHMS, transfers, links, strict=True)
        ]


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """Orderings and ratios, never absolute times; first that the laboratory itself can be believed."""
    median = {(outcome.loss, outcome.algorithm): outcome.times.median_s for outcome in outcomes}
    clean, lossy = _LOSSES
    return [
        Claim(
            "packets were delivered less than 1 ms late on average",
            punctual(each.counters for each in outcomes),
        ),
        Claim(
            "packets were lost at the rate asked for, within 4 standard deviations",
            all(map(_as_asked, outcomes)),
        ),
        Claim(
            "without loss CUBIC and BBR differ by less than a quarter",
            0.8 < median[clean, "cubic"] / median[clean, "bbr"] < 1.25,
        ),
        Claim(
            f"at loss {lossy} CUBIC takes more than 3 times as long as BBR",
            median[lossy, "cubic"] > 3 * median[lossy, "bbr"],
        ),
        Claim(
            f"loss {lossy} makes BBR less than half as slow again",
            median[lossy, "bbr"] < 1.5 * median[clean, "bbr"],
        ),
    ]


def _as_asked(outcome: Outcome) -> bool:
    """The binomial distribution's mean and standard deviation."""
    offered, loss = outcome.counters.offered, outcome.loss
    return abs(outcome.counters.lost - offered * loss) <= 4 * sqrt(offered * loss * (1 - loss))
