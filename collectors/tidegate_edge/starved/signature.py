"""Which sockets show a BBR sender that is short of CPU. Pure."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate_edge.sockets.decode import Rows

_STEADY_GAIN: Final = 512  # net/ipv4/tcp_bbr.c, bbr_cwnd_gain in PROBE_BW; 256 is 1.0
_LEAST_SEGMENTS: Final = 2
_UNMEASURED: Final = 2**32 - 1  # bbr_min_rtt_us before the first sample
_RECOVERY: Final = 3  # include/uapi/linux/tcp.h: TCP_CA_Recovery, and TCP_CA_Loss above it
_US: Final = 1e6


@dataclass(frozen=True, slots=True)
class Signs:
    """What the sockets of one look say.

    Attributes:
        bbr: those that BBR sends on in its steady state, with bytes waiting, and not limited by the application.
        starved: those of them with less than half of the path in flight.
    """

    bbr: int = 0
    starved: int = 0

    def __add__(self, other: "Signs") -> "Signs":
        return Signs(self.bbr + other.bbr, self.starved + other.starved)


def signs(rows: Rows) -> Signs:
    """Count the signs in rows of `tidegate_edge.schemas.rows.ROW`, by the rules of the metric `bbr_starved`."""
    sending = (
        np.char.startswith(rows["congestion_control"], b"bbr")
        & (rows["delivery_rate_app_limited"] == 0)
        & (rows["bbr_bw"] > 0)
        & (rows["bbr_min_rtt_us"] > 0)
        & (rows["bbr_min_rtt_us"] < _UNMEASURED)
        & (rows["bbr_cwnd_gain"] == _STEADY_GAIN)
        & (rows["notsent_bytes"] > 0)
        & (rows["ca_state"] < _RECOVERY)
    )
    found = rows[sending]
    # A double holds it exactly up to 2^53, which is 100 Gbit/s over 700 ms.
    path = found["bbr_bw"].astype(np.float64) * found["bbr_min_rtt_us"] / _US  # bytes
    mss = found["snd_mss"].astype(np.float64)
    window = found["snd_wnd"]
    judged = (path >= mss * _LEAST_SEGMENTS) & ((window == 0) | (window >= path))
    starved = judged & (2 * found["unacked"] * mss < path)
    return Signs(int(judged.sum()), int(starved.sum()))
