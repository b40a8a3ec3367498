"""The metrics, and the clauses that each may stand in."""

from dataclasses import dataclass
from typing import Final, Literal

from .units import Dimension

Place = Literal["where", "measure", "exclude", "abort"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity of a socket; `places` are the clauses it may stand in."""

    name: str
    dimension: Dimension
    places: tuple[Place, ...]
    meaning: str


# What a value over the lookback can be formed of; SPEC.md says how.
_EVERYWHERE: Final[tuple[Place, ...]] = ("where", "measure", "exclude", "abort")
_OF_SAMPLES: Final[tuple[Place, ...]] = ("where",)
_OF_LOOKBACKS: Final[tuple[Place, ...]] = ("exclude", "abort")

METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "delivery_rate",
            "rate",
            _EVERYWHERE,
            "rate at which data was delivered, as the kernel last estimated it",
        ),
        Metric("pacing_rate", "rate", _EVERYWHERE, "rate at which the sender paces"),
        Metric("goodput", "rate", _OF_LOOKBACKS, "bytes of a transfer over its duration, from access logs"),
        Metric("rtt", "duration", _EVERYWHERE, "smoothed round-trip time"),
        Metric("min_rtt", "duration", _EVERYWHERE, "lowest round-trip time that the connection saw lately"),
        Metric("rttvar", "duration", _EVERYWHERE, "mean deviation of the round-trip time"),
        Metric("rto", "duration", _OF_SAMPLES, "retransmission timeout"),
        Metric("cwnd", "segments", _EVERYWHERE, "congestion window"),
        Metric("ssthresh", "segments", _OF_SAMPLES, "slow start threshold"),
        Metric("inflight", "segments", _EVERYWHERE, "segments sent and not acknowledged"),
        Metric("lost", "segments", _OF_SAMPLES, "segments that are held for lost and not yet repaired"),
        Metric("reordering", "segments", _OF_SAMPLES, "how far segments were seen to arrive out of order"),
        Metric("mss", "size", _OF_SAMPLES, "maximum segment size that is sent"),
        Metric("pmtu", "size", _OF_SAMPLES, "largest packet that the path is known to take"),
        Metric("snd_wnd", "size", _OF_SAMPLES, "window that the receiver advertised"),
        Metric("bytes_acked", "size", _OF_SAMPLES, "bytes acknowledged over the connection's life"),
        Metric("bytes_sent", "size", _OF_SAMPLES, "bytes sent over the connection's life, repeats included"),
        Metric("bytes_received", "size", _OF_SAMPLES, "bytes received over the connection's life"),
        Metric("bytes_retrans", "size", _OF_SAMPLES, "bytes sent again over the connection's life"),
        Metric("notsent_bytes", "size", _OF_SAMPLES, "bytes that wait in the socket and were never sent"),
        Metric(
            "busy_time",
            "duration",
            _OF_SAMPLES,
            "time over the connection's life with data under way or waiting",
        ),
        Metric("retransmit_ratio", "ratio", _EVERYWHERE, "retransmitted segments over data segments sent"),
        Metric(
            "ce_ratio",
            "ratio",
            _EVERYWHERE,
            "delivered segments with a congestion mark (ECN) over all delivered",
        ),
        Metric(
            "rwnd_limited",
            "ratio",
            _EVERYWHERE,
            "share of the busy time that the receiver's window held data back",
        ),
        Metric(
            "sndbuf_limited",
            "ratio",
            _EVERYWHERE,
            "share of the busy time that the send buffer held data back",
        ),
        Metric(
            "host_cpu_pressure",
            "ratio",
            _OF_LOOKBACKS,
            "share of time in which tasks of the POP's hosts waited for a CPU",
        ),
        Metric(
            "bbr_starved",
            "ratio",
            _OF_LOOKBACKS,
            "share of samples that show BBR short of CPU: bytes wait, little is in flight, and the host is pressed",
        ),
        Metric(
            "app_limited",
            "flag",
            _OF_SAMPLES,
            "the last rate estimate was bound by the application, not the path",
        ),
        Metric(
            "in_slow_start", "flag", _OF_SAMPLES, "the congestion window is below the slow start threshold"
        ),
        Metric("in_recovery", "flag", _OF_SAMPLES, "the connection repairs a loss: state Recovery or Loss"),
    )
}
