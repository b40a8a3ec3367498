"""BBR that is short of CPU, not of bandwidth: when a sample shows it, as SQL of socket_samples.

BBR paces by a timer. A sender whose CPU comes late sends late, its next bandwidth estimate is lower, and so on
down: docs/cpu-limited-bbr.md has the laboratory's figures. Such a prefix looks slow, and BBR makes it worse.

A sample is starved where all of this holds:

- BBR holds it in its steady state, PROBE_BW, whose cwnd_gain is 2 (net/ipv4/tcp_bbr.c, bbr_cwnd_gain); that of
  STARTUP and DRAIN is 2.89, that of PROBE_RTT, where little in flight is meant, 1;
- nothing but the sender holds back: bytes wait in the socket, the last rate sample was not application-limited, no
  loss is being repaired, and the receiver's window, where the kernel reports it, has room for the path;
- less than half of bandwidth x min_rtt is in flight. Healthy BBR keeps it near one; even its draining phase of gain
  3/4 ends at one (bbr_is_next_cycle_phase). Bytes in flight count what was selectively acknowledged too, so that the
  test errs towards "not starved";
- the host says so for that minute: see `_EVIDENCE`.

A sample of a host that reports no health of that minute is neither: nobody knows.
"""

from typing import Final

_STEADY_GAIN: Final = 512  # 256 is 1.0
_LEAST_SEGMENTS: Final = 2  # of a path's bandwidth x min_rtt: below, half of it is less than a segment
_PPM: Final = 1_000_000
_STALLED_PPM: Final = 200_000
_STOLEN_PPM: Final = 50_000
_MINUTE_S: Final = 60
_LONGEST_S: Final = 3_600  # of a row's interval, so that a damaged one can not claim all of time


def _at_least(part: str, whole: str, ppm: int) -> str:
    return f"({whole} > 0 AND toUInt128({part}) * {_PPM} >= toUInt128({whole}) * {ppm})"


# Some task waited for a CPU (PSI); where the kernel has no PSI, so many tasks a CPU did; a hypervisor took the CPU.
_EVIDENCE: Final = (
    _at_least("cpu_stalled_us", "observed_us", _STALLED_PPM),
    f"(observed_us = 0 AND {_at_least('run_delay_us', 'toUInt128(interval_us) * cpus', _STALLED_PPM)})",
    _at_least("steal_us", "cpu_time_us", _STOLEN_PPM),
)
_PATH: Final = "toUInt128(bbr_bw) * bbr_min_rtt_us"  # bytes x 1,000,000
_SIGNATURE: Final = (
    "startsWith(congestion_control, 'bbr') AND delivery_rate_app_limited = 0"
    " AND bbr_bw > 0 AND bbr_min_rtt_us BETWEEN 1 AND 4294967294"  # ~0U: no sample of it yet
    f" AND bbr_cwnd_gain = {_STEADY_GAIN} AND notsent_bytes > 0"
    " AND ca_state < 3"  # TCP_CA_Recovery and TCP_CA_Loss: include/uapi/linux/tcp.h
    f" AND {_PATH} >= toUInt128(snd_mss) * {_LEAST_SEGMENTS * _PPM}"
    f" AND (snd_wnd = 0 OR toUInt128(snd_wnd) * {_PPM} >= {_PATH})"
    f" AND toUInt128(unacked) * snd_mss * {2 * _PPM} < {_PATH}"
)


def _reported(evidence: str) -> str:
    """Whether a row of health of the sample's host and minute, of those that are evidence, is there.

    A row tells of the interval that ends with it, and of every minute that this touches.
    """
    minute = f"intDiv(toUnixTimestamp({{}}), {_MINUTE_S})"
    begin = f"observed_at - toIntervalSecond(least(intDiv(interval_us, {_PPM}), {_LONGEST_S}))"
    near = " AND ".join(
        f"observed_at {comparison} fromUnixTimestamp64Nano({{{bound}:Int64}} + {seconds * 10**9}, 'UTC')"
        for comparison, bound, seconds in (
            (">=", "from_ns", -_MINUTE_S),
            ("<", "to_ns", _LONGEST_S + _MINUTE_S),
        )
    )
    return f"""((pop, host, {minute.format("observed_at")}) IN (
        SELECT pop, host, arrayJoin(range({minute.format(begin)}, {minute.format("observed_at")} + 1))
        FROM host_health WHERE {near} AND ({evidence})
    ))"""  # noqa: S608 - constants of this file


HEALTH_KNOWN: Final = _reported("true")
"""Whether the sample's host told of its health in that minute; of the windows from `from_ns` to `to_ns`."""

BBR_STARVED: Final = f"({_SIGNATURE} AND {_reported(' OR '.join(_EVIDENCE))})"
"""Whether a sample shows a BBR sender that is short of CPU."""
