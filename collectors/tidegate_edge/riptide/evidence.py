"""Which connections tell something of the path, and the mean of their windows by destination."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.steer.prefix import Prefix, PrefixIndex, order

from .observe import Connections
from .state import COUNTED, LOWERED, REASONS, Mean, Numbers, Seen

KERNEL_INITCWND: Final = 10  # TCP_INIT_CWND of include/net/tcp.h, RFC 6928
_NO_THRESHOLD: Final = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH of include/net/tcp.h
_CWR: Final = 2  # TCP_CA_CWR of include/uapi/linux/tcp.h; recovery and loss are above it

_MAPPED: Final = 0xFFFF  # RFC 4291, section 2.5.5.2
_LOW_32: Final = (1 << 32) - 1
_HALF: Final = 64
_CACHED: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one observation says.

    Attributes:
        means: by destination; of those with at least one connection that counts.
        counts: connections that counted, those of them that lowered, and those left out, by reason.
        seen: to be given to the next call.
    """

    means: Mapping[Prefix, Mean]
    counts: Mapping[str, int]
    seen: Seen


def weigh(
    connections: Connections,
    before: Seen | None,
    learned: Mapping[Prefix, int],
    given: Mapping[Prefix, int],
    within: Collection[Prefix] = (),
) -> Evidence:
    """Leave out what says nothing of the path, and average the rest by destination.

    A connection is left out for the first of these that is true of it:

    - `lossy`: it retransmitted since the last observation, or is reducing its window (CWR, recovery or loss). Such a
      one never raises a window. Where the loss left it less than was learned, it counts with that: its slow start
      threshold (RFC 5681, section 3.1, equation 4; RFC 9438, section 4.6), or its window where the algorithm keeps
      no threshold (BBR).
    - `idle`: nothing of it was acknowledged since the last observation; its window is old.
    - `first_window`: it has not had a whole initial window acknowledged.
    - `app_limited`: the application offered too little to fill the window (RFC 7661).
    - `echo`: it still has the window that it started with, which says what was set and not what the path carries.

    Args:
        connections: as observed.
        before: the connections of the observation before; one that is not among them is new. None: there was no
            observation, so that nothing is known of what happened since, and every connection is idle.
        learned: segments by destination.
        given: initial windows that new connections have, segments; of others it is the kernel's own.
        within: prefixes by which destinations are grouped, all that occur; none: each address by itself.
    """
    destinations, place = _destinations(connections, within)
    learned_here = _looked_up(learned, destinations, 0)[place]
    given_here = _looked_up(given, destinations, KERNEL_INITCWND)[place]
    now = Seen(connections.cookie, connections.acked, connections.retransmitted, given_here)
    known, seen = _seen_before(now, before)
    initial = np.where(known, seen.initial, given_here)

    thresholdless = connections.ssthresh >= _NO_THRESHOLD
    lossy = (connections.ca_state >= _CWR) | (connections.retransmitted > seen.retransmitted)
    after_loss = np.where(thresholdless, connections.cwnd, connections.ssthresh)
    lowers = lossy & (after_loss < learned_here)
    holds_for = (
        lossy,
        known & (connections.acked == seen.acked),
        connections.acked < initial * connections.mss,
        connections.app_limited > 0,
        thresholdless & (connections.cwnd == initial),
    )
    counts = {COUNTED: 0, LOWERED: int(lowers.sum())}
    counting = ~lowers
    for reason, holds in zip(REASONS, holds_for, strict=True):
        counts[reason] = int((counting & holds).sum())
        counting &= ~holds
    counting |= lowers
    counts[COUNTED] = int(counting.sum())
    windows = np.where(lowers, after_loss, connections.cwnd)
    return Evidence(
        _means(destinations, place[counting], windows[counting]),
        counts,
        _sorted(replace(now, initial=initial)),
    )


def _means(
    destinations: list[Prefix], place: npt.NDArray[np.intp], windows: Numbers
) -> Mapping[Prefix, Mean]:
    totals = np.bincount(place, windows, len(destinations))  # exact: sums stay far below 2^53
    counts = np.bincount(place, minlength=len(destinations))
    return {destinations[each]: Mean(int(totals[each]), int(counts[each])) for each in np.flatnonzero(counts)}


def _seen_before(now: Seen, before: Seen | None) -> tuple[npt.NDArray[np.bool_], Seen]:
    """Which were there before, and what they had then; of those that were not, zero."""
    if before is None:
        return np.ones(len(now.cookie), np.bool_), now
    if not len(before.cookie):
        nothing = np.zeros(len(now.cookie), np.uint64)
        return np.zeros(len(now.cookie), np.bool_), Seen(now.cookie, nothing, nothing, nothing)
    at = np.minimum(np.searchsorted(before.cookie, now.cookie), len(before.cookie) - 1)
    known = before.cookie[at] == now.cookie
    columns = (before.acked, before.retransmitted, before.initial)
    return known, Seen(now.cookie, *(np.where(known, column[at], np.uint64(0)) for column in columns))


def _sorted(seen: Seen) -> Seen:
    by_cookie = np.argsort(seen.cookie)
    return Seen(*(getattr(seen, column.name)[by_cookie] for column in fields(Seen)))


def _looked_up(values: Mapping[Prefix, int], destinations: list[Prefix], otherwise: int) -> Numbers:
    return np.array([values.get(each, otherwise) for each in destinations], np.uint64)


def _destinations(
    connections: Connections, within: Collection[Prefix]
) -> tuple[list[Prefix], npt.NDArray[np.intp]]:
    """The destinations, each once, and the place in them of each connection's."""
    pairs = np.stack([connections.high, connections.low], axis=1).view("V16")[:, 0]
    unique, place = np.unique(pairs, return_inverse=True)
    addresses = unique.view(np.uint64).reshape(-1, 2)
    hosts: list[Prefix] = [_host(high, low) for high, low in addresses.tolist()]
    if not within:
        return hosts, place
    index = PrefixIndex((order(prefix), prefix) for prefix in within)
    grouped = [index.nearest(order(host)) or host for host in hosts]
    places = {prefix: number for number, prefix in enumerate(dict.fromkeys(grouped))}
    return list(places), np.array([places[prefix] for prefix in grouped], np.intp)[place]


@lru_cache(maxsize=_CACHED)
def _host(high: int, low: int) -> Prefix:
    if high == 0 and low >> 32 == _MAPPED:
        return IPv4Network(low & _LOW_32)
    return IPv6Network(high << _HALF | low)
