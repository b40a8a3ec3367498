"""What the records of M-Lab's two formats share: their times, their addresses, and what becomes of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt

_TIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?Z")
_MAPPED: Final = np.frombuffer(bytes(10) + b"\xff\xff", np.uint8)  # RFC 4291, section 2.5.5.2
IPV4_BITS: Final = 120  # a /24 behind the 96 bits of the mapped prefix
IPV6_BITS: Final = 56


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Rows of schemas/rows.py; `left_out` counts, by reason, records that gave none."""

    rows: npt.NDArray[np.void]
    left_out: Mapping[str, int]


def unix_ns(text: object) -> int:
    """A UTC time of RFC 3339 as Unix time in nanoseconds, which fit into 64 bits.

    Raises:
        ValueError: it is none, or lies before 1970 or behind 2554.
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"`{str(text)[:40]}` is not a UTC time")
    seconds = int(datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp())
    nanoseconds = seconds * 10**9 + int((match[2] or "0").ljust(9, "0"))
    if not 0 <= nanoseconds < 2**64:
        raise ValueError(f"`{text}` is no time of a socket")
    return nanoseconds


def cut(addresses: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint32]]:
    """Cut addresses of shape (n, 16), IPv4 mapped, to /24 or /56; returns them as V16, and the bits kept of 128."""
    kept = addresses.copy()
    is_ipv4 = (kept[:, :12] == _MAPPED).all(axis=1)
    kept[is_ipv4, IPV4_BITS // 8 :] = 0
    kept[~is_ipv4, IPV6_BITS // 8 :] = 0
    bits = np.where(is_ipv4, IPV4_BITS, IPV6_BITS).astype(np.uint32)
    return kept.view("V16").reshape(-1), bits
