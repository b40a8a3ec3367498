/* What the programs read of the kernel's own structures: only the fields used, in any order.
 *
 * libbpf moves each access to where the running kernel's BTF says the field is (CO-RE), so neither offsets nor
 * neighbours matter, and no kernel's headers are needed. A name behind `___` is a flavour: the same structure as
 * other versions of the kernel have it.
 * Sources: include/net/sock.h, include/net/inet_connection_sock.h, include/linux/tcp.h, net/ipv4/tcp_bbr.c.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct ns_common {
	unsigned int inum;
};

struct hlist_nulls_node {
	struct hlist_nulls_node *next;
};

/* Arrays of inet_ehash_bucket, each a pointer to its first node, or an odd number. */
struct inet_hashinfo {
	struct inet_ehash_bucket *ehash;
	unsigned int ehash_mask;
};

struct inet_timewait_death_row {
	struct inet_hashinfo *hashinfo;
};

struct netns_ipv4 {
	struct inet_timewait_death_row tcp_death_row;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	unsigned int skc_hash;
	struct hlist_nulls_node skc_nulls_node;
	refcount_t skc_refcnt;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	unsigned int uid;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

/* Before 5.15: a pointer, or tags in its low bits that stand for the root. */
struct sock_cgroup_data___tagged {
	__u64 val;
};

struct hlist_node {
	struct hlist_node **pprev;
};

struct timer_list {
	struct hlist_node entry;
};

struct inode {
	unsigned long i_ino;
};

struct socket {
	int unused;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

typedef struct {
	int owned;
} socket_lock_t;

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct {
		int len;
	} sk_backlog;
	unsigned long sk_tsq_flags;
	__u32 sk_priority;
	struct socket *sk_socket;
	struct timer_list sk_timer;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct sock_cgroup_data sk_cgrp_data;
};

/* Since 6.18 the socket knows its inode's number. */
struct sock___ino {
	unsigned long sk_ino;
};

struct inet_sock {
	struct sock sk;
};

/* A structure that begins with a number, as which any eight bytes can be read. */
struct timespec64 {
	__s64 tv_sec;
};

struct tcp_congestion_ops {
	char name[16];
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	__u32 icsk_pmtu_cookie;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
	__u8 icsk_pending;
	__u64 icsk_ca_priv[13];
};

/* Where sock.sk_timer is gone. */
struct inet_connection_sock___keepalive {
	struct timer_list icsk_keepalive_timer;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	__u16 wscale_ok : 1;
	__u16 snd_wscale : 4;
	__u16 rcv_wscale : 4;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	struct minmax rtt_min;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 srtt_us;
	__u32 mdev_us;
	__u32 snd_ssthresh;
	__u32 snd_cwnd;
	__u32 reordering;
	__u32 total_retrans;
	__u32 segs_out;
	__u32 segs_in;
	__u32 data_segs_out;
	__u32 data_segs_in;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 snd_wnd;
	__u64 bytes_acked;
	__u64 bytes_received;
	__u64 bytes_sent;
	__u64 bytes_retrans;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 chrono_start;
	__u32 chrono_stat[3];
	__u8 chrono_type : 2;
	__u8 rate_app_limited : 1;
};

struct bbr {
	__u32 min_rtt_us;
	struct minmax bw;
	__u32 lt_use_bw : 1;
	__u32 lt_bw;
	__u32 pacing_gain : 10;
	__u32 cwnd_gain : 10;
};

#pragma clang attribute pop
