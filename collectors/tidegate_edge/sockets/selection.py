"""Which sockets become rows: a sample of them, less those of excluded ports and prefixes."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

import numpy as np
import numpy.typing as npt

from .addresses import IPV4_BITS_BEFORE, Addresses, high_mask, low_mask
from .decode import Rows

Network = IPv4Network | IPv6Network
Mask = npt.NDArray[np.bool_]

_MAPPED: Final = 0xFFFF << 32
_HALF: Final = 64
_LOW: Final = (1 << _HALF) - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """What a collector reads of all sockets.

    Attributes:
        one_in: one in so many sockets is read; 1 reads all.
        ports: a socket with one of them on either side is passed over.
        prefixes: a socket whose remote address is in one of them is passed over.
    """

    one_in: int = 1
    ports: tuple[int, ...] = ()
    prefixes: tuple[Network, ...] = ()

    @property
    def everything(self) -> bool:
        """No socket is passed over."""
        return self.one_in == 1 and not self.ports and not self.prefixes

    def kept(self, rows: Rows, remote: Addresses) -> Mask:
        """True for the sockets that are read.

        Args:
            rows: with cookies and ports in place.
            remote: whole remote addresses of the rows.
        """
        kept = in_sample(rows["cookie"], self.one_in)
        if self.ports:
            kept &= ~np.isin(rows["local_port"], self.ports) & ~np.isin(rows["remote_port"], self.ports)
        for prefix in self.prefixes:
            kept &= ~within(remote, prefix)
        return kept


EVERYTHING: Final = Selection()


def in_sample(cookies: npt.NDArray[np.uint64], one_in: int) -> Mask:
    """True for one in so many cookies, by their hash: a socket is in it for all of its life, or never.

    What a sample of one in 100 holds, a sample of one in 10 holds too. Cookies count upwards, so the hash must
    spread neighbours: it is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014, "Fast splittable
    pseudorandom number generators", mix64variant13).
    """
    mixed = cookies.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    sampled: Mask = mixed <= np.uint64(_LOW // one_in)
    return sampled


def within(addresses: Addresses, prefix: Network) -> Mask:
    """True for the addresses of a prefix."""
    first, bits = int(prefix.network_address), prefix.prefixlen
    if isinstance(prefix, IPv4Network):
        first, bits = first | _MAPPED, bits + IPV4_BITS_BEFORE
    inside: Mask = addresses.high & high_mask(bits) == np.uint64(first >> _HALF)
    inside &= addresses.low & low_mask(bits) == np.uint64(first & _LOW)
    return inside
