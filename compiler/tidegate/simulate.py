"""Telemetry of a simulated fleet, to try policies on: labelled by its host name, seeded, the same bytes anywhere.

All arithmetic is on integers, so that no machine's floating point shows in the files.
"""

import ipaddress
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tidegate_dsl.model import Fleet, Pop

from tidegate.characters import ELSE, WAYS, Dice, Integers, Network, Way, characters
from tidegate.errors import Failure
from tidegate.schemas.rows import new_rows
from tidegate.schemas.sockets_pb2 import TrafficClass

HOST: Final = b"simulated"
STEP_S: Final = 300
_POLL_S: Final = 10
_WINDOWS_AT_ONCE: Final = 72
_GAP: Final = 64  # in one window of so many, chosen at random, a prefix has only half of its samples
_MSS: Final = 1448  # bytes: 1500 less 40 of IPv4 and TCP headers and 12 of timestamps
_MBPS: Final = 125_000  # bytes per second
_PPM: Final = 1_000_000
_LARGE: Final = 100_000  # bytes

# Transfers of our own: between POPs, within a POP, from origins.
_PEER: Final = Way((200, 800), (15_000, 120_000), (0, 500), samples=(3, 5))
_INSIDE: Final = Way((400, 2_000), (100, 400), (0, 50), samples=(3, 5))
_ORIGIN: Final = Way((100, 400), (20_000, 60_000), (0, 1_000), samples=(2, 3))


@dataclass(frozen=True, slots=True)
class _Destination:
    """A remote prefix, whose it is and the way to it."""

    network: Network
    traffic_class: TrafficClass
    way: Way


def simulate(fleet: Fleet, *, seed: int, start: datetime, hours: float, out: Path) -> list[Path]:
    """Write one file of rows a POP, `out`/POP.pb; `characters` tells what is in it.

    Args:
        fleet: its POPs get clients outside of all own prefixes and origins.
        seed: the same seed gives the same bytes.
        start: of the first window, on a five-minute boundary.
        hours: rounded down to windows of five minutes.
        out: a directory, made where it is missing; files are written aside, then renamed.

    Raises:
        Failure: a start between boundaries, less than a window, no room for clients, or `out` cannot be written.
    """
    start_s, windows = int(start.timestamp()), int(hours * 3600) // STEP_S
    if start.timestamp() % STEP_S:
        raise Failure(
            f"{start:%Y-%m-%dT%H:%M:%SZ} is not on a five-minute boundary", help="windows start there"
        )
    if windows < 1:
        raise Failure(f"{hours} hours hold no window of five minutes")
    clients = characters(fleet, seed=seed)
    written = []
    for pop in fleet.pops:
        destinations = [
            _Destination(ipaddress.ip_network(prefix), TrafficClass.TRAFFIC_CLASS_CLIENT, WAYS[character])
            for prefix, character in clients[pop.name].items()
        ]
        path = out / f"{pop.name}.pb"
        _write(path, pop, destinations + _ours(fleet, pop), Dice(seed, pop.name, "samples"), start_s, windows)
        written.append(path)
    return written


def _ours(fleet: Fleet, pop: Pop) -> list[_Destination]:
    """Destinations that are not clients."""
    found = [
        _Destination(ipaddress.ip_network(prefix), TrafficClass.TRAFFIC_CLASS_ORIGIN, _ORIGIN)
        for prefix in fleet.origins
    ]
    for other in fleet.pops:
        of_this_pop = other.name == pop.name
        kind = TrafficClass.TRAFFIC_CLASS_INTRA_POP if of_this_pop else TrafficClass.TRAFFIC_CLASS_POP_TO_POP
        way = _INSIDE if of_this_pop else _PEER
        found += [_Destination(ipaddress.ip_network(prefix), kind, way) for prefix in other.own_prefixes]
    return found


def _write(
    path: Path, pop: Pop, destinations: list[_Destination], dice: Dice, start_s: int, windows: int
) -> None:
    """Window after window, in pieces, so that memory does not grow with the hours."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    ways = _drawn(destinations, dice)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            for first in range(0, windows, _WINDOWS_AT_ONCE):
                span = np.arange(first, min(first + _WINDOWS_AT_ONCE, windows))
                rows = _rows(pop, destinations, ways, dice, start_s, span)
                file.write(rows.data)
        aside.replace(path)
    except OSError as error:
        raise Failure(
            f"{path}: cannot be written: {error.strerror}", help="what stood there is unchanged"
        ) from error
    finally:
        with suppress(OSError):
            aside.unlink()


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What each destination is, an array element each: rates in bytes per second, losses in ppm."""

    slow_rate: Integers
    else_rate: Integers
    slow_loss: Integers
    else_loss: Integers
    min_rtt_us: Integers


def _drawn(destinations: list[_Destination], dice: Dice) -> _Drawn:
    ways, size = [d.way for d in destinations], len(destinations)

    def draw(name: str, scale: int = 1) -> Integers:
        low, high = np.array([getattr(way, name) for way in ways]).T
        return dice.between(low * scale, high * scale, size)

    return _Drawn(
        slow_rate=draw("rate_mbps", _MBPS),
        else_rate=dice.between(ELSE.rate_mbps[0] * _MBPS, ELSE.rate_mbps[1] * _MBPS, size),
        slow_loss=draw("loss_ppm"),
        else_loss=dice.between(*ELSE.loss_ppm, size),
        min_rtt_us=draw("min_rtt_us"),
    )


def _rows(
    pop: Pop, destinations: list[_Destination], drawn: _Drawn, dice: Dice, start_s: int, windows: Integers
) -> npt.NDArray[np.void]:
    """The samples of some windows, in the order of time."""
    where, window, app_limited, small = _samples(destinations, dice, windows)
    size = len(where)
    poll = dice.between(0, STEP_S // _POLL_S - 1, size)
    order = np.argsort(window * STEP_S + poll * _POLL_S, kind="stable")
    where, window, app_limited, small, poll = (a[order] for a in (where, window, app_limited, small, poll))

    is_slow = _slow(destinations, windows)[where, window - windows[0]]
    rate = np.where(is_slow, drawn.slow_rate[where], drawn.else_rate[where])
    rate = rate * dice.between(800, 1200, size) // 1000 // (1 + 9 * app_limited) // (1 + 7 * small)
    loss = np.where(is_slow, drawn.slow_loss[where], drawn.else_loss[where])
    loss = loss * dice.between(800, 1200, size) // 1000
    min_rtt = drawn.min_rtt_us[where] * dice.between(1000, 1030, size) // 1000
    rtt = min_rtt * dice.between(1020, 1600, size) // 1000
    # The product of two dice: many small transfers, few large ones.
    large_bytes = _LARGE + (dice.between(0, 65535, size) * dice.between(0, 65535, size) * 8_000_000 >> 32)
    acked = np.where(small == 1, dice.between(2_000, _LARGE - 1, size), large_bytes)
    segments = -(-acked // _MSS)
    lost = (segments * loss + dice.between(0, _PPM - 1, size)) // _PPM
    window_segments = 2 + rate * rtt // (_MSS * _PPM)

    rows = new_rows(size)
    for name, value in {
        "observed_at_ns": (start_s + window * STEP_S + poll * _POLL_S) * 10**9,
        "pop": pop.name.encode(),
        "host": HOST,
        "traffic_class": np.array([d.traffic_class for d in destinations])[where],
        "cookie": window * 2**32 + np.arange(size),
        "local_port": 443,
        "remote_port": dice.between(1024, 65535, size),
        "state": 1,
        "congestion_control": b"cubic",
        "send_wscale": 7,
        "receive_wscale": 7,
        "delivery_rate_app_limited": app_limited,
        "rto_us": rtt + 200_000,
        "snd_mss": _MSS,
        "pmtu": 1500,
        "rtt_us": rtt,
        "rttvar_us": (rtt - min_rtt) // 2,
        "snd_ssthresh": window_segments,
        "snd_cwnd": window_segments,
        "reordering": 3,
        "total_retrans": lost,
        "min_rtt_us": min_rtt,
        "segs_out": segments + lost + 2,
        "segs_in": segments // 2 + 3,
        "data_segs_out": segments + lost,
        "data_segs_in": 1,
        "delivered": segments + 1,
        "snd_wnd": 4 * 2**20,
        "delivery_rate": rate,
        "bytes_acked": acked,
        "bytes_received": 500,
        "bytes_sent": acked + lost * _MSS,
        "bytes_retrans": lost * _MSS,
        "busy_time_us": acked * _PPM // rate,
    }.items():
        rows[name] = value
    remote = [_cut(d.network) for d in destinations]
    local = [_cut(_own(pop, d.network.version)) for d in destinations]
    for side, ends in (("remote", remote), ("local", local)):
        rows[f"{side}_address"] = np.array([address for address, _ in ends], "V16")[where]
        rows[f"{side}_prefix_length"] = np.array([bits for _, bits in ends])[where]
    return rows


def _samples(
    destinations: list[_Destination], dice: Dice, windows: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Of each sample: which destination, which window, whether app-limited, whether small (0 or 1)."""
    size = len(destinations) * len(windows)
    where = np.repeat(np.arange(len(destinations)), len(windows))
    window = np.tile(windows, len(destinations))
    has_gap = dice.between(0, _GAP - 1, size) == 0
    parts = []
    for name, app_limited, small in (("samples", 0, 0), ("app_limited", 1, 0), ("small", 0, 1)):
        low, high = np.array([getattr(d.way, name) for d in destinations]).T
        number = dice.between(low[where], high[where], size) >> has_gap
        total = int(number.sum())
        parts.append(
            (
                np.repeat(where, number),
                np.repeat(window, number),
                np.full(total, app_limited),
                np.full(total, small),
            )
        )
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def _slow(destinations: list[_Destination], windows: Integers) -> npt.NDArray[np.bool_]:
    """By destination and window, whether the way is slow."""
    return np.array([[d.way.slow_in[w % len(d.way.slow_in)] == "1" for w in windows] for d in destinations])


def _own(pop: Pop, version: int) -> Network:
    """The POP's own prefix of a family, or of the other where it has none."""
    own = [ipaddress.ip_network(prefix) for prefix in pop.own_prefixes]
    return next((network for network in own if network.version == version), own[0])


def _cut(network: Network) -> tuple[bytes, int]:
    """A network's address as a row holds it, cut to /24 or /56, and the bits kept of 128."""
    if isinstance(network, ipaddress.IPv4Network):
        cut = ipaddress.ip_network((network.network_address, min(network.prefixlen, 24)), strict=False)
        return bytes(10) + b"\xff\xff" + cut.network_address.packed, 120
    cut = ipaddress.ip_network((network.network_address, min(network.prefixlen, 56)), strict=False)
    return cut.network_address.packed, 56
