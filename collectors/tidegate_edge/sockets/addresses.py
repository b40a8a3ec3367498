"""Addresses as two 64-bit numbers of one 128-bit space, and cutting them.

IPv4 stands in it as ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2).
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import numpy as np
import numpy.typing as npt

Halves = npt.NDArray[np.uint64]

IPV4_BITS_BEFORE: Final = 96
_MAPPED: Final = 0xFFFF
_HALF: Final = 64
_ALL: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Cut:
    """How many leading bits of an address are kept.

    Attributes:
        ipv4: of 32.
        ipv6: of 128.
    """

    ipv4: int = 24
    ipv6: int = 56

    def __post_init__(self) -> None:
        if not (0 <= self.ipv4 <= 32 and 0 <= self.ipv6 <= 128):
            raise ValueError(f"no prefix lengths: /{self.ipv4} of IPv4, /{self.ipv6} of IPv6")


DEFAULT: Final = Cut()
FULL: Final = Cut(32, 128)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses in host order: the upper and the lower 64 bits of each."""

    high: Halves
    low: Halves

    def at(self, indices: npt.NDArray[np.intp]) -> "Addresses":
        """Those at the indices."""
        return Addresses(self.high[indices], self.low[indices])

    def is_ipv4(self) -> npt.NDArray[np.bool_]:
        """True where the address is IPv4-mapped, so also for IPv4 on a dual-stack socket."""
        mapped: npt.NDArray[np.bool_] = self.low >> np.uint64(32) == _MAPPED
        mapped &= self.high == 0
        return mapped

    def cut(self, cut: Cut) -> tuple["Addresses", npt.NDArray[np.uint32]]:
        """The addresses with all but the kept bits zero, and how many of the 128 were kept of each."""
        ipv4 = self.is_ipv4()
        four, six = IPV4_BITS_BEFORE + cut.ipv4, cut.ipv6
        if ipv4.all():
            return Addresses(self.high, self.low & low_mask(four)), np.full(len(ipv4), four, np.uint32)
        kept = np.where(ipv4, np.uint32(four), np.uint32(six))
        high = self.high & high_mask(six)  # of a mapped address these bits are zero already
        return Addresses(high, self.low & np.where(ipv4, low_mask(four), low_mask(six))), kept


def as_text(address: bytes, kept: int) -> str:
    """An address of a row for people: cut ones with their prefix length, `192.0.2.0/24`; whole ones bare."""
    six = IPv6Address(address)
    four = six.ipv4_mapped
    if four is not None and kept >= IPV4_BITS_BEFORE:
        return _with_length(four, kept - IPV4_BITS_BEFORE)
    return _with_length(six, kept)


def _with_length(address: IPv4Address | IPv6Address, kept: int) -> str:
    return str(address) if kept == address.max_prefixlen else f"{address}/{kept}"


def high_mask(bits: int) -> np.uint64:
    """The upper half of a mask of so many leading bits of 128."""
    return np.uint64(_ALL << max(_HALF - bits, 0) & _ALL)


def low_mask(bits: int) -> np.uint64:
    """The lower half of a mask of so many leading bits of 128."""
    return np.uint64(_ALL << max(2 * _HALF - bits, 0) & _ALL) if bits > _HALF else np.uint64(0)
