"""What learned initial windows do to small objects between two POPs that are 150 ms apart.

Two arms learn, four times a second, from the same traffic over a link of 48 Mbit/s: a long transfer each, and
connections that carried one small object and stay open. Then every arm fetches objects of three sizes over a link
that has delay and nothing else, so that times are round trips. At last the long transfer of our own arm is moved
onto a link that loses packets.
"""

import http.client
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Final, TypeVar

from tidegate_edge.riptide import Observer, State, learn
from tidegate_edge.riptide import claims as claimed_windows
from tidegate_edge.riptide.published import learn_as_published, list_sockets
from tidegate_edge.steer.steering import Learn

from tidegate_lab.direction import Counters
from tidegate_lab.experiments.claim import Claim
from tidegate_lab.experiments.on_time import on_time, punctual
from tidegate_lab.kernel import inside_namespace
from tidegate_lab.link import End, Link, link
from tidegate_lab.namespaces import configure, namespace
from tidegate_lab.service import service
from tidegate_lab.shape import Shape
from tidegate_lab.transfers import Client, Summary, fetch, fetching, summary

Found = TypeVar("Found")

ROUND_TRIP_S: Final = 0.150
SIZES: Final = (60_000, 100_000, 150_000)  # bytes
ARMS: Final = ("default", "static 50", "static 100", "published", "riptide")
_DEFAULT, _STATIC_50, _STATIC_100, _PUBLISHED, _OURS = ARMS
_TRANSFERS: Final = 3
_SMALL_CONNECTIONS: Final = 20
_PORT: Final = 8080
_PATIENCE_S: Final = 60.0

_PLAIN: Final = Shape(delay_ms=1000 * ROUND_TRIP_S / 2)
_SHAPES: Final = {
    "plain": _PLAIN,
    "bulk": replace(_PLAIN, rate_bps=48_000_000, buffer_bytes=900_000),
    "lossy": replace(_PLAIN, rate_bps=48_000_000, loss=0.05),
}

_CLIENTS: Final = {arm: f"192.0.2.{number}" for number, arm in enumerate(ARMS, 1)}
_SERVERS: Final = {arm: f"198.51.100.{number}" for number, arm in enumerate(ARMS, 1)}
_DESTINATIONS: Final = {arm: ip_network(address) for arm, address in _CLIENTS.items()}

_LEARNING_OBSERVATIONS: Final = 12
_EVERY_S: Final = 0.25
# With a weight of one half five observations make 97 % of the window.
_SMOOTHING_INTERVALS: Final = 5
SETTINGS: Final = Learn(
    toward=(_DESTINATIONS[_OURS],),
    initcwnd_min=10,
    initcwnd_max=100,
    smooth_ppm=500_000,
    every_us=round(1e6 * _EVERY_S),
    expire_us=600_000_000,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One arm and one size of object, bytes, fetched with an initial window in segments."""

    arm: str
    size: int
    initcwnd: int
    times: Summary


@dataclass(frozen=True, slots=True)
class UnderLoss:
    """How our own arm's learned window followed its path, segments.

    Attributes:
        largest_cwnd: that a connection had while the path was clean.
        before: learned while the path was clean.
        after: learned five observations after the first that lowered it.
        expired: nothing was claimed when nobody had been observed for as long as the settings say.
    """

    largest_cwnd: int
    before: int
    after: int
    expired: bool


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run; `counters` are those of the direction towards the clients, of each part in turn, by link."""

    outcomes: Sequence[Outcome]
    under_loss: UnderLoss
    counters: Sequence[Mapping[str, Counters]]


@dataclass(frozen=True, slots=True)
class _Laboratory:
    """Two namespaces, the links between them by name, and what the learner sees of the server's connections."""

    server: str
    client: str
    links: Mapping[str, Link]
    observer: Observer

    def steer(self, arm: str, device: str, initcwnd: int = 10) -> None:
        """New connections to the arm's client get this window; all go by this link."""
        route = f"{_CLIENTS[arm]}/32 dev {device} src {_SERVERS[arm]} congctl cubic initcwnd {initcwnd}"
        configure(self.server, [f"route replace {route}"])

    def fetches(self, arm: str, name: str, count: int) -> Client:
        return Client(self.client, f"http://{_SERVERS[arm]}:{_PORT}/{name}", count)


def measure() -> Report:
    """Run the experiment, about 20 seconds: its parts, each again where its links were late.

    Raises:
        subprocess.CalledProcessError: not root, or the kernel lacks TUN or CUBIC.
        RuntimeError: the learner saw nothing within a minute.
    """
    windows, learning = _on_time(_learn)
    fetched = [_on_time(partial(_fetch, windows, size)) for size in SIZES]
    under_loss, losing = _on_time(_lose)
    return Report(
        [outcome for outcomes, _ in fetched for outcome in outcomes],
        under_loss,
        [learning, *(counters for _, counters in fetched), losing],
    )


def _on_time(part: Callable[[_Laboratory], Found]) -> tuple[Found, Mapping[str, Counters]]:
    """What a part finds in a laboratory of its own, and the counters of its links towards the clients."""

    def once() -> tuple[Found, Mapping[str, Counters]]:
        with _laboratory() as lab:
            return part(lab), {name: running.counters()[0] for name, running in lab.links.items()}

    return on_time(once, lambda found: found[1].values())


@contextmanager
def _laboratory() -> Iterator[_Laboratory]:
    with ExitStack() as stack:
        objects = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, size in {"small": 1000, "long": 1 << 30, **{str(each): each for each in SIZES}}.items():
            with (objects / name).open("wb") as file:
                file.truncate(size)
        server = stack.enter_context(namespace("server"))
        client = stack.enter_context(namespace("client"))
        links: dict[str, Link] = {}
        for name, shape in _SHAPES.items():
            near, far = End(server, name), End(client, name)
            if not links:  # requests and acknowledgements always go by the first
                near = replace(near, addresses=tuple(f"{each}/32" for each in _SERVERS.values()))
                far = replace(
                    far,
                    addresses=tuple(f"{each}/32" for each in _CLIENTS.values()),
                    routes=tuple(f"{_SERVERS[arm]}/32 src {_CLIENTS[arm]}" for arm in ARMS),
                )
            links[name] = stack.enter_context(link(near, far, shape, _PLAIN))
        with inside_namespace(server):
            observer = stack.enter_context(closing(Observer(SETTINGS.toward)))
        lab = _Laboratory(server, client, links, observer)
        for arm in ARMS:
            lab.steer(arm, "plain")
        argv = (sys.executable, "-m", "tidegate_lab.objects", str(_PORT), str(objects))
        stack.enter_context(service(server, *argv, port=_PORT))
        yield lab


def _learn(lab: _Laboratory) -> Mapping[str, int]:
    """The window of each arm; the published script and the learner make theirs of the same traffic."""
    learning = (_PUBLISHED, _OURS)
    published = ours = State()
    with ExitStack() as stack:
        for arm in learning:
            lab.steer(arm, "bulk")
        with ThreadPoolExecutor(_SMALL_CONNECTIONS) as pool:
            opened = pool.map(partial(_small_connection, lab), learning * _SMALL_CONNECTIONS)
            for connection in opened:
                stack.enter_context(closing(connection))
        stack.enter_context(fetching([lab.fetches(arm, "long", 1) for arm in learning]))
        for _ in _intervals():
            with inside_namespace(lab.server):
                listed = list_sockets()
            published = learn_as_published(published, listed, SETTINGS, _now_us())
            ours = learn(ours, lab.observer.observe(), SETTINGS, _now_us())
            if ours.counts["counted"] >= _LEARNING_OBSERVATIONS:
                break
    return {
        _DEFAULT: 10,
        _STATIC_50: 50,
        _STATIC_100: 100,
        _PUBLISHED: published.learned[_DESTINATIONS[_PUBLISHED]].window,
        _OURS: claimed_windows(ours, SETTINGS)[_DESTINATIONS[_OURS]],
    }


def _small_connection(lab: _Laboratory, arm: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(_SERVERS[arm], _PORT, timeout=_PATIENCE_S)
    with inside_namespace(lab.client):
        connection.request("GET", "/small")
        connection.getresponse().read()
    return connection


def _fetch(windows: Mapping[str, int], size: int, lab: _Laboratory) -> list[Outcome]:
    for arm, window in windows.items():
        lab.steer(arm, "plain", window)
    fetched = fetch([lab.fetches(arm, str(size), _TRANSFERS) for arm in ARMS])
    return [
        Outcome(arm, size, windows[arm], summary(times)) for arm, times in zip(ARMS, fetched, strict=True)
    ]


def _lose(lab: _Laboratory) -> UnderLoss:
    lab.steer(_OURS, "bulk")
    state = State()
    largest = before = 0
    with fetching([lab.fetches(_OURS, "long", 1)]):
        for _ in _intervals():
            observation = lab.observer.observe()
            state = learn(state, observation, SETTINGS, _now_us())
            largest = max(largest, *observation.connections.cwnd.tolist(), 0)
            before = claimed_windows(state, SETTINGS).get(_DESTINATIONS[_OURS], 0)
            if largest > SETTINGS.initcwnd_max == before:
                break
        lab.steer(_OURS, "lossy")
        lowering = 0
        for _ in _intervals():
            state = learn(state, lab.observer.observe(), SETTINGS, _now_us())
            lowering += bool(lowering or state.counts["lowered"])
            if lowering > _SMOOTHING_INTERVALS:
                break
    after = claimed_windows(state, SETTINGS)[_DESTINATIONS[_OURS]]
    for _ in _intervals():
        observation = lab.observer.observe()
        if not len(observation.connections):
            break
    late = learn(state, observation, SETTINGS, _now_us() + SETTINGS.expire_us)
    return UnderLoss(largest, before, after, not claimed_windows(late, SETTINGS))


def _intervals() -> Iterator[None]:
    """The learner's intervals, for the loop to leave.

    Raises:
        RuntimeError: it did not, within a minute.
    """
    start = time.monotonic()
    for number in range(1, round(_PATIENCE_S / _EVERY_S)):
        time.sleep(max(0.0, start + number * _EVERY_S - time.monotonic()))
        yield
    raise RuntimeError(f"the learner did not see what it should within {_PATIENCE_S:.0f} s")


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def claims(report: Report) -> list[Claim]:
    """Orderings and round trips, never absolute times; first that the laboratory itself can be believed."""
    median = {(each.arm, each.size): each.times.median_s for each in report.outcomes}
    window = {each.arm: each.initcwnd for each in report.outcomes}
    path = report.under_loss

    def saved(arm: str, size: int) -> float:
        return (median[_DEFAULT, size] - median[arm, size]) / ROUND_TRIP_S

    return [
        Claim(
            "packets were delivered less than 1 ms late on average",
            punctual(each for part in report.counters for each in part.values()),
        ),
        Claim("at 100 KB the learned window saves at least one round trip", saved(_OURS, 100_000) >= 1),
        Claim(
            "at every size it is as good as a static 50, within half a round trip",
            all(saved(_OURS, size) > saved(_STATIC_50, size) - 0.5 for size in SIZES),
        ),
        Claim(
            "connections that stay open after a small object do not lower it, as they do the published script's",
            window[_OURS] > window[_PUBLISHED],
        ),
        Claim("the cap holds where windows grow beyond it", _cap_holds(path)),
        Claim("packet loss halves it within the smoothing time", path.after <= path.before / 2),
        Claim("it expires", path.expired),
    ]


def _cap_holds(path: UnderLoss) -> bool:
    return path.largest_cwnd > SETTINGS.initcwnd_max == path.before
