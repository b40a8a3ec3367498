"""Which destinations are observed and get nothing, so that the gain of the others can be measured."""

import hashlib
from typing import Final

from tidegate_edge.steer.prefix import Prefix

MILLION: Final = 1_000_000
_NAME: Final = "tidegate riptide hold-out"


def draw_ppm(destination: Prefix) -> int:
    """The destination's place in the draw, 0 to 999,999: the same on every host and in every run.

    It is held out where this is less than the share. A larger share holds out the same ones and more. From the
    first 64 bits of SHA-256 (FIPS 180-4) of a fixed name and the destination.
    """
    digest = hashlib.sha256(f"{_NAME}\n{destination}".encode()).digest()
    return int.from_bytes(digest[:8]) * MILLION >> 64
