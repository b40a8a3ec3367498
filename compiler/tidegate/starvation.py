"""BBR that is short of CPU, not of bandwidth: when a sample shows it, as SQL of socket_samples.

BBR paces by a timer. A sender whose CPU comes late sends late, its next bandwidth estimate is lower, and so on
down: in the laboratory a sender kernel stopped for 15 of every 30 ms had CUBIC at 85 and BBR at 27 of 100 Mbit/s,
stopped for 20 of every 30 ms at 65 and 2. Such a prefix looks slow, and BBR makes it worse.

A sample is starved where all of this holds:

- BBR holds it in its steady state, PROBE_BW, whose cwnd_gain is 2 (net/ipv4/tcp_bbr.c, bbr_cwnd_gain); that of
  STARTUP and DRAIN is 2.89, that of PROBE_RTT, where little in flight is meant, 1;
- nothing but the sender holds back: bytes wait in the socket, the last rate sample was not application-limited, no
  loss is being repaired, and the receiver's window, where the kernel reports it, has room for the path;
- less than half of bandwidth x min_rtt is in flight. Healthy BBR keeps it near one; even its draining phase of gain
  3/4 ends at one (bbr_is_next_cycle_phase). A sender that runs a share d of the time keeps about d of it in flight,
  and at d = 1/2 the laboratory's BBR had lost most of its goodput. Bytes in flight count what was selectively
  acknowledged too, so that the test errs towards "not starved";
- the host says so for that minute: some task waited for a CPU in a fifth of the time (PSI), or a twentieth of the
  CPU time was stolen. A host that reports no health gives no evidence.

The half follows from the laboratory's table; the fifth and the twentieth are chosen, not calibrated.
"""

from typing import Final

_STEADY_GAIN: Final = 512  # 256 is 1.0
_LEAST_SEGMENTS: Final = 16  # of a path's bandwidth x min_rtt: below, whole bursts of segments decide
_PPM: Final = 1_000_000
_STALLED_PPM: Final = 200_000
_STOLEN_PPM: Final = 50_000

_PATH: Final = "toUInt128(bbr_bw) * bbr_min_rtt_us"  # bytes x 1,000,000

# A row tells of the interval that ends with it; it touches these minutes.
_MINUTE: Final = "intDiv(toUnixTimestamp({}), 60)"
_PRESSED: Final = f"""(
    SELECT pop, host, arrayJoin(range(
        {_MINUTE.format("observed_at - toIntervalMicrosecond(interval_us)")},
        {_MINUTE.format("observed_at")} + 1
    )) FROM host_health
    WHERE (observed_us > 0 AND toUInt128(cpu_stalled_us) * {_PPM} >= toUInt128(observed_us) * {_STALLED_PPM})
        OR (cpu_time_us > 0 AND toUInt128(steal_us) * {_PPM} >= toUInt128(cpu_time_us) * {_STOLEN_PPM})
)"""  # noqa: S608 - constants of this file

BBR_SENDING: Final = (
    "(startsWith(congestion_control, 'bbr') AND delivery_rate_app_limited = 0"
    " AND bbr_bw > 0 AND bbr_min_rtt_us BETWEEN 1 AND 4294967294)"  # ~0U: no sample of it yet
)
"""Whether a sample is of a BBR socket that the application does not hold back."""

BBR_STARVED: Final = (
    f"({BBR_SENDING} AND bbr_cwnd_gain = {_STEADY_GAIN} AND notsent_bytes > 0"
    " AND ca_state < 3"  # TCP_CA_Recovery and TCP_CA_Loss: include/uapi/linux/tcp.h
    f" AND {_PATH} >= toUInt128(snd_mss) * {_LEAST_SEGMENTS * _PPM}"
    f" AND (snd_wnd = 0 OR toUInt128(snd_wnd) * {_PPM} >= {_PATH})"
    f" AND toUInt128(unacked) * snd_mss * {2 * _PPM} < {_PATH}"
    f" AND (pop, host, {_MINUTE.format('observed_at')}) IN {_PRESSED})"
)
"""Whether a sample of `BBR_SENDING` shows a sender that is short of CPU."""
