"""The recording of the example policies: what a collector of fra2 would write of a few client networks."""

import ipaddress

import numpy as np
from tidegate.schemas.rows import new_rows
from tidegate.schemas.sockets_pb2 import TrafficClass

AT_S = 1_795_155_000  # 2026-11-20T06:10:00Z: the last window of five minutes in one of fifteen
SAMPLES = 20
# What every network has but for what is said of it: slow, lossy, far away, and held back by the path alone.
USUAL = {
    "delivery_rate": 200_000,  # bytes per second: 1.6 Mbps
    "total_retrans": 20,  # of 1,000 segments: 2%
    "min_rtt_us": 80_000,
    "rwnd_limited_us": 0,
}
NETWORKS = {
    "192.0.2.0/24": {},
    "198.51.100.0/24": {"min_rtt_us": 4_000},
    "203.0.113.0/24": {"total_retrans": 1},
    "2001:db8:7::/56": {"rwnd_limited_us": 800_000},  # of a second
    "198.18.7.0/24": {"delivery_rate": 5_000_000},
}


def recording() -> bytes:
    """Twenty samples of each network, one every ten seconds."""
    rows = new_rows(len(NETWORKS) * SAMPLES)
    number = np.arange(len(rows))
    rows["observed_at_ns"] = (AT_S + number % SAMPLES * 10) * 10**9
    rows["cookie"] = number + 1
    for field, value in {
        "pop": b"fra2",
        "host": b"made_for_examples",
        "traffic_class": TrafficClass.TRAFFIC_CLASS_CLIENT,
        "congestion_control": b"cubic",
        "state": 1,
        "sampled": 1,
        "rtt_us": 90_000,
        "snd_mss": 1448,
        "snd_cwnd": 20,
        "snd_ssthresh": 20,
        "data_segs_out": 1_000,
        "bytes_acked": 1_448_000,
        "busy_time_us": 1_000_000,
    }.items():
        rows[field] = value
    for place, (network, special) in enumerate(NETWORKS.items()):
        of = slice(place * SAMPLES, (place + 1) * SAMPLES)
        parsed = ipaddress.ip_network(network)
        shift = 96 if parsed.version == 4 else 0
        mapped = 0xFFFF << 32 if shift else 0
        address = (mapped | int(parsed.network_address)).to_bytes(16, "big")
        rows["remote_address"][of] = np.frombuffer(address, rows.dtype["remote_address"])
        rows["remote_prefix_length"][of] = parsed.prefixlen + shift
        for field, value in (USUAL | special).items():
            rows[field][of] = value
    return rows.tobytes()
