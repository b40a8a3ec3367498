"""Each metric of the language as SQL: of one sample, of one window, of the whole lookback.

All values are integers in the metric's base unit (dsl/SPEC.md), so the same telemetry gives the same bytes on
every machine. Zero means that the kernel measured nothing: it reports a delivery rate of zero before the first
one, and a min_rtt of ~0U (net/ipv4/tcp.c, tcp_get_info). Rates above `MAX_BYTES_PER_SECOND` are damage.
"""

from dataclasses import dataclass
from typing import Final

MAX_BYTES_PER_SECOND: Final = 125_000_000_000_000  # 1 Pbit/s
PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Metric:
    """SQL expressions over socket_samples (`sample`, `known`) and over prefix_windows (`lookback`).

    `window` aggregates the samples of a window into the column `column` of prefix_windows; 0 is unknown.
    """

    sample: str
    known: str
    column: str
    window: str
    lookback: str


def _median(sample: str, known: str, column: str) -> Metric:
    """Lower median of samples, then lower median of windows: an observed value, never an average of two."""
    return Metric(
        sample,
        known,
        column,
        f"quantileExactLowIf(0.5)({sample}, {known})",
        f"quantileExactLowIf(0.5)({column}, {column} > 0)",
    )


METRICS: Final = {
    "delivery_rate": _median(
        "delivery_rate * 8", f"delivery_rate BETWEEN 1 AND {MAX_BYTES_PER_SECOND}", "delivery_rate"
    ),
    "rtt": _median("rtt_us", "rtt_us > 0", "rtt"),
    "cwnd": _median("snd_cwnd", "snd_cwnd > 0", "cwnd"),
    "min_rtt": Metric(
        "min_rtt_us",
        "min_rtt_us BETWEEN 1 AND 4294967294",
        "min_rtt",
        "minIf(min_rtt_us, min_rtt_us BETWEEN 1 AND 4294967294)",
        "minIf(min_rtt, min_rtt > 0)",
    ),
}

# The ratio of two sums has no value of its own to aggregate: both sums are kept, and compared as integers.
RETRANSMIT_RATIO: Final = "retransmit_ratio"
RETRANSMITTED: Final = "total_retrans"
SENT: Final = "data_segs_out"

# What only stands in `where`: (column, SQL type of the parameter).
SAMPLE_ONLY: Final = {"bytes_acked": "bytes_acked", "app_limited": "delivery_rate_app_limited"}
