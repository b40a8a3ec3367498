"""What the client prefixes of a simulated fleet are like: the truth that a policy should find again."""

import hashlib
import ipaddress
from dataclasses import dataclass
from enum import Enum
from itertools import count, islice
from typing import Final

import numpy as np
import numpy.typing as npt
from tidegate_dsl.model import Fleet, Pop

from tidegate.errors import Failure

IPV4_PREFIXES: Final = 64  # a POP
IPV6_PREFIXES: Final = 26
_IPV4: Final = list(ipaddress.IPv4Network("198.18.0.0/15").subnets(new_prefix=24))  # RFC 2544
_IPV6: Final = ipaddress.IPv6Network("2001:db8::/36")  # RFC 3849

Integers = npt.NDArray[np.int64]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Range = tuple[int, int]  # both ends possible


class Character(Enum):
    """What a client prefix is like."""

    FAST = "fast"
    SLOW_AND_LOSSY = "slow and lossy"  # all the time and far away: what the example policy looks for
    SLOW_WITHOUT_LOSS = "slow without loss"
    SLOW_AND_NEAR = "slow and near"
    FLAPPING = "flapping"
    SLOW_AT_TIMES = "slow at times"
    SELDOM_SEEN = "seldom seen"
    APP_LIMITED = "app limited"
    SMALL_TRANSFERS = "small transfers"


@dataclass(frozen=True, slots=True)
class Way:
    """The way to a destination. Where it is not slow it has the rate and loss of `ELSE`.

    `samples` a window are large transfers with data waiting; `app_limited` and `small` ones come on top, at a
    fraction of the rate. `slow_in` says which windows are slow, repeated.
    """

    rate_mbps: Range
    min_rtt_us: Range
    loss_ppm: Range
    samples: Range = (20, 22)
    app_limited: Range = (0, 1)
    small: Range = (0, 1)
    slow_in: str = "1"


_LOSSY: Final = (10_000, 30_000)
_CLEAN: Final = (0, 1_500)
ELSE: Final = Way((40, 90), (0, 0), _CLEAN)
WAYS: Final = {
    Character.FAST: Way((14, 90), (12_000, 90_000), _CLEAN),
    Character.SLOW_AND_LOSSY: Way((1, 4), (50_000, 150_000), _LOSSY),
    Character.SLOW_WITHOUT_LOSS: Way((1, 4), (30_000, 60_000), _CLEAN),
    Character.SLOW_AND_NEAR: Way((1, 4), (2_000, 7_000), _LOSSY),
    Character.FLAPPING: Way((6, 7), (60_000, 90_000), _LOSSY, slow_in="1110"),
    Character.SLOW_AT_TIMES: Way((6, 7), (60_000, 90_000), _LOSSY, slow_in="0" * 48 + "1" * 24),
    Character.SELDOM_SEEN: Way((1, 4), (60_000, 90_000), _LOSSY, samples=(4, 14)),
    Character.APP_LIMITED: Way((40, 90), (60_000, 90_000), _LOSSY, app_limited=(26, 30)),
    Character.SMALL_TRANSFERS: Way((40, 90), (60_000, 90_000), _LOSSY, small=(26, 30)),
}
# SLOW_AND_LOSSY are 8 to 10 of 90, FAST all that remain. All that are slow at once, at most 17, fit into the lowest
# fifth of the 86 that are observed, so that none pushes another out.
_SLOW_AND_LOSSY: Final = (8, 10)
_COUNTS: Final = {
    Character.SLOW_WITHOUT_LOSS: 2,
    Character.SLOW_AND_NEAR: 2,
    Character.FLAPPING: 2,
    Character.SLOW_AT_TIMES: 1,
    Character.SELDOM_SEEN: 4,
    Character.APP_LIMITED: 2,
    Character.SMALL_TRANSFERS: 2,
}


class Dice:
    """Random integers that are the same on every machine.

    They are scaled from the raw stream of a Philox generator, which NumPy keeps the same in every version
    (NEP 19); it does not promise that of its distributions.
    """

    def __init__(self, *seed: object) -> None:
        digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
        self._stream = np.random.Philox(key=int.from_bytes(digest[:16], "big"))

    def between(self, low: int | Integers, high: int | Integers, size: int) -> Integers:
        """`size` integers from low to high, both possible; the span must be below 2**32."""
        raw = self._stream.random_raw(size) >> np.uint64(32)
        span = np.asarray(high - low + 1, np.uint64)
        return (raw * span >> np.uint64(32)).astype(np.int64) + low

    def shuffled(self, size: int) -> Integers:
        """A permutation of 0 to size - 1."""
        return np.argsort(self._stream.random_raw(size), kind="stable")


def characters(fleet: Fleet, *, seed: int) -> dict[str, dict[str, Character]]:
    """The client prefixes that `simulate` makes for each POP, and what each is like.

    Raises:
        Failure: own prefixes and origins leave no room for clients.
    """
    return {pop.name: _of_pop(fleet, index, pop, seed) for index, pop in enumerate(fleet.pops)}


def _of_pop(fleet: Fleet, index: int, pop: Pop, seed: int) -> dict[str, Character]:
    dice = Dice(seed, pop.name, "characters")
    kinds = [Character.SLOW_AND_LOSSY] * int(dice.between(*_SLOW_AND_LOSSY, 1)[0])
    for character, number in _COUNTS.items():
        kinds += [character] * number
    prefixes = _client_prefixes(fleet, index)
    kinds += [Character.FAST] * (len(prefixes) - len(kinds))
    return {
        str(prefixes[place]): kind for place, kind in zip(dice.shuffled(len(prefixes)), kinds, strict=True)
    }


def _client_prefixes(fleet: Fleet, index: int) -> list[Network]:
    """Prefixes of documentation and benchmarks that are nobody's of ours; of its own a POP while there are enough."""
    ours = [ipaddress.ip_network(text) for pop in fleet.pops for text in pop.own_prefixes]
    ours += [ipaddress.ip_network(text) for text in fleet.origins]

    def is_free(network: Network) -> bool:
        return not any(network.version == own.version and network.overlaps(own) for own in ours)

    ipv4: list[Network] = [network for network in _IPV4 if is_free(network)]
    if len(ipv4) < IPV4_PREFIXES or any(own.version == 6 and own.supernet_of(_IPV6) for own in ours):
        raise Failure(
            "the inventory's own prefixes leave none to simulate clients in",
            help=f"simulated clients are in 198.18.0.0/15 and {_IPV6}",
        )
    first = index * IPV4_PREFIXES
    ipv6 = (ipaddress.IPv6Network((int(_IPV6.network_address) + (number << 72), 56)) for number in count())
    free = filter(is_free, ipv6)
    return [
        *(ipv4[(first + offset) % len(ipv4)] for offset in range(IPV4_PREFIXES)),
        *islice(free, index * IPV6_PREFIXES, (index + 1) * IPV6_PREFIXES),
    ]
