"""What the kernel's structures look like: tables of data, read by the decoder.

Offsets and values are those of the userspace API headers of Linux 6.18: include/uapi/linux/netlink.h,
include/uapi/linux/inet_diag.h and include/uapi/linux/tcp.h. The structures only ever grow at their end, so a
table of the newest kernel reads every older one: what a kernel did not send stays zero.

Numbers are in host order, except ports and addresses. Only little-endian hosts are read.
"""

from typing import Final

NETLINK_SOCK_DIAG: Final = 4

# struct nlmsghdr: length (u32), type (u16), flags (u16), sequence (u32), port id (u32).
HEADER_LENGTH: Final = 16

NLMSG_ERROR: Final = 2
NLMSG_DONE: Final = 3
TCPDIAG_GETSOCK: Final = 18
SOCK_DIAG_BY_FAMILY: Final = 20
SOCKET_TYPES: Final = frozenset({TCPDIAG_GETSOCK, SOCK_DIAG_BY_FAMILY})

NLM_F_REQUEST: Final = 0x01
NLM_F_DUMP_INTR: Final = 0x10
NLM_F_DUMP: Final = 0x300

AF_INET: Final = 2
AF_INET6: Final = 10

# struct inet_diag_msg follows the header; attributes follow it.
ATTRIBUTES_AT: Final = HEADER_LENGTH + 72
FAMILY_AT: Final = HEADER_LENGTH
LOCAL_ADDRESS_AT: Final = HEADER_LENGTH + 8
REMOTE_ADDRESS_AT: Final = HEADER_LENGTH + 24

# Row field: (numpy format, offset from the message's start).
MESSAGE_FIELDS: Final = {
    "state": ("u1", 17),
    "timer": ("u1", 18),
    "local_port": (">u2", 20),
    "remote_port": (">u2", 22),
    "cookie": ("<u8", 60),
    "receive_queue": ("<u4", 72),
    "send_queue": ("<u4", 76),
    "uid": ("<u4", 80),
    "inode": ("<u4", 84),
}

# struct rtattr: length (u16, with these four bytes), type (u16, two high bits are flags).
ATTRIBUTE_HEADER_LENGTH: Final = 4
ATTRIBUTE_TYPE_MASK: Final = 0x3FFF
INET_DIAG_INFO: Final = 2
INET_DIAG_VEGASINFO: Final = 3
INET_DIAG_CONG: Final = 4
INET_DIAG_SKMEMINFO: Final = 7
INET_DIAG_BBRINFO: Final = 16
INET_DIAG_CGROUP_ID: Final = 21  # since 5.7, always sent

# A request asks for attribute N with bit N - 1; BBR's own comes with VEGASINFO.
WANTED_ATTRIBUTES: Final = 1 << INET_DIAG_INFO - 1 | 1 << INET_DIAG_VEGASINFO - 1 | 1 << INET_DIAG_CONG - 1

# TCP_CA_NAME_MAX of include/net/tcp.h, with the NUL.
ALGORITHM_LENGTH: Final = 16

# Up to tcpi_total_retrans, as Linux 2.6 had it; less is not a tcp_info.
TCP_INFO_MIN_LENGTH: Final = 104

# struct tcp_info. Row field: (numpy format, offset in the structure).
TCP_INFO_FIELDS: Final = {
    "ca_state": ("u1", 1),
    "retransmits": ("u1", 2),
    "rto_us": ("<u4", 8),
    "snd_mss": ("<u4", 16),
    "unacked": ("<u4", 24),
    "lost": ("<u4", 32),
    "retrans": ("<u4", 36),
    "pmtu": ("<u4", 60),
    "rtt_us": ("<u4", 68),
    "rttvar_us": ("<u4", 72),
    "snd_ssthresh": ("<u4", 76),
    "snd_cwnd": ("<u4", 80),
    "reordering": ("<u4", 88),
    "total_retrans": ("<u4", 100),
    "pacing_rate": ("<u8", 104),
    "max_pacing_rate": ("<u8", 112),
    "bytes_acked": ("<u8", 120),
    "bytes_received": ("<u8", 128),
    "segs_out": ("<u4", 136),
    "segs_in": ("<u4", 140),
    "notsent_bytes": ("<u4", 144),
    "min_rtt_us": ("<u4", 148),
    "data_segs_in": ("<u4", 152),
    "data_segs_out": ("<u4", 156),
    "delivery_rate": ("<u8", 160),
    "busy_time_us": ("<u8", 168),
    "rwnd_limited_us": ("<u8", 176),
    "sndbuf_limited_us": ("<u8", 184),
    "delivered": ("<u4", 192),
    "delivered_ce": ("<u4", 196),
    "bytes_sent": ("<u8", 200),
    "bytes_retrans": ("<u8", 208),
    "snd_wnd": ("<u4", 228),
}

# Bit-fields of struct tcp_info on a little-endian host. Row field: (offset of the byte, shift, mask).
TCP_INFO_BITS: Final = {
    "send_wscale": (6, 0, 0x0F),
    "receive_wscale": (6, 4, 0x0F),
    "delivery_rate_app_limited": (7, 0, 0x01),
}

# struct tcp_bbr_info; bandwidth is two words, low and high, which is one little-endian u64.
BBR_INFO_LENGTH: Final = 20
BBR_INFO_FIELDS: Final = {
    "bbr_bw": ("<u8", 0),
    "bbr_min_rtt_us": ("<u4", 8),
    "bbr_pacing_gain": ("<u4", 12),
    "bbr_cwnd_gain": ("<u4", 16),
}

CGROUP_ID_LENGTH: Final = 8
CGROUP_ID_FIELDS: Final = {"cgroup_id": ("<u8", 0)}

# include/net/tcp_states.h
STATES: Final = {
    1: "ESTABLISHED",
    2: "SYN_SENT",
    3: "SYN_RECV",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    6: "TIME_WAIT",
    7: "CLOSE",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
    11: "CLOSING",
    12: "NEW_SYN_RECV",
    13: "BOUND_INACTIVE",
}
