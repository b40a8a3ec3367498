/* The kernel's TCP sockets as finished rows of schemas/sockets.proto: a BPF iterator (iter/tcp).
 *
 * A field holds what NETLINK_SOCK_DIAG would say of the socket: net/ipv4/inet_diag.c for what is the socket's,
 * tcp_get_info() of net/ipv4/tcp.c for what is TCP's, bbr_get_info() of net/ipv4/tcp_bbr.c for BBR's.
 * The reader puts the bytes that all rows share (frame, names, time, namespace) in place; the program fills in the rest.
 * Addresses in rows are cut here; whole ones stand beside them, for what the reader does with those.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "row.h"

char LICENSE[] SEC("license") = "GPL";

#define AF_INET 2
#define USEC_PER_SEC 1000000ULL

enum { ICSK_TIME_RETRANS = 1, ICSK_TIME_PROBE0 = 3, ICSK_TIME_LOSS_PROBE = 5, ICSK_TIME_REO_TIMEOUT = 6 };
enum { TIMER_NONE, TIMER_RETRANSMIT, TIMER_KEEPALIVE, TIMER_PROBE0 = 4 }; /* idiag_timer */
enum { TCP_TIME_WAIT = 6 }; /* include/net/tcp_states.h */
enum { CHRONO_BUSY = 1, CHRONO_RWND_LIMITED, CHRONO_SNDBUF_LIMITED };
enum { BBR_BW_SCALE = 24 };
enum { ROOT_CGROUP_ID = 1 };
enum { BUCKETS_AHEAD = 24 }; /* in which there mostly is a socket if the table has one for ten buckets */

/* Shared with the reader through memory. Each reader loads a program of its own and reads no further before it has
 * taken what stands here, so a row is never written by two. */
struct {
	__u32 states; /* a bit for each wanted */
	__u32 hz;     /* jiffies a second */
	__u64 unread; /* sockets of an algorithm whose own state the kernel would tell but its BTF does not */
	__u32 at;     /* the row that is written next, so the number of rows; zeroed by the reader before each read */
	__u32 kept_ipv4, kept_ipv6; /* leading bits of 128 that stay of an address */
	__u32 classifies;              /* the program does, and not the reader */
	__u64 mask_ipv4, mask_ipv6[2]; /* the same as masks in host order: lower half, both halves */
	__u64 class_from[CLASS_STEPS]; /* the traffic class of each key from this one on; what is left over repeats */
	__u32 class[CLASS_STEPS];
	__u64 whole[4][READ_ROWS];     /* host order: local high, local low, remote high, remote low */
	__u8 rows[READ_ROWS][ROW_LENGTH];
} shared;

#define PUT32(field, value) (*(__u32 *)(row + ROW_AT_##field) = (value))
#define PUT64(field, value) (*(__u64 *)(row + ROW_AT_##field) = (value))

/* Reads a value for nothing but its cache line. */
#define TOUCH(value) asm volatile("" ::"r"(value))

/* A socket mostly lies outside of the cache. All lines that will be read are asked for at once, one value of each
 * (Linux 6.18; elsewhere some are one line), for otherwise their misses wait for each other: a third of the cost. */
static __always_inline void touch_lines(struct tcp_sock *tp, struct inet_connection_sock *icsk, struct sock *sk)
{
	struct sock___ino *knows = (void *)sk;

	TOUCH(icsk->icsk_ca_ops);
	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		TOUCH(sk->sk_cgrp_data.cgroup);
	TOUCH(sk->sk_pacing_rate);
	if (bpf_core_field_exists(knows->sk_ino))
		TOUCH(knows->sk_ino);
	TOUCH(icsk->icsk_retransmits);
	TOUCH(icsk->icsk_ca_priv[0]);
	TOUCH(icsk->icsk_ca_priv[12]); /* bbr's lies in two */
	TOUCH(tp->mss_cache);
	TOUCH(tp->rtt_min.s[0].v);
	TOUCH(tp->segs_out);
	TOUCH((__u32)BPF_CORE_READ_BITFIELD(tp, rate_app_limited));
	TOUCH(tp->snd_una);
	TOUCH(tp->segs_in);
	TOUCH(tp->bytes_acked);
	TOUCH(tp->total_retrans);
}

/* Since 6.2: an address as a pointer to a structure, whose reads find zeros where there is no memory. */
extern void *bpf_rdonly_cast(const void *address, __u32 type) __ksym __weak;

#define AS(type, address) ((type *)bpf_rdonly_cast((void *)(address), bpf_core_type_id_kernel(type)))
#define NUMBER_AT(address) (AS(struct timespec64, address)->tv_sec)

/* The walk goes from bucket to bucket, and waits for each socket's lines as it takes it, locks it and lets it go. Those
 * of the next one are asked for together with this one's. Nothing else is done with what is read: it may be a socket
 * that is just being freed. */
static __always_inline void touch_next(struct sock_common *common)
{
	struct inet_hashinfo *table = common->skc_net.net->ipv4.tcp_death_row.hashinfo;
	__u32 mask = table->ehash_mask, at = common->skc_hash & mask;
	__u64 bucket = NUMBER_AT(&table->ehash) + sizeof(__u64) * at;
	__u64 node = 1;
	struct sock *next;

	if (at + BUCKETS_AHEAD > mask)
		return;
	for (int ahead = 1; node & 1; ahead++) {
		if (ahead > BUCKETS_AHEAD)
			return;
		node = NUMBER_AT(bucket + sizeof(__u64) * ahead);
	}
	next = AS(struct sock, node - bpf_core_field_offset(struct sock_common, skc_nulls_node));
	TOUCH(next->__sk_common.skc_family);
	TOUCH(next->__sk_common.skc_cookie.counter);
	TOUCH(next->__sk_common.skc_refcnt.refs.counter);
	TOUCH(next->sk_lock.owned);
	TOUCH(next->sk_tsq_flags);
	TOUCH(next->sk_backlog.len);
	TOUCH(next->sk_priority); /* sk_uid's line */
}

static __always_inline void put_address(__u8 *address, __u8 *kept, __u32 at, __u32 side, __u64 high, __u64 low)
{
	/* An address mapped into IPv6 (RFC 4291, section 2.5.5.2) is cut as the IPv4 address that it is. */
	bool ipv4 = !high && low >> 32 == 0xffff;

	shared.whole[2 * side][at] = high;
	shared.whole[2 * side + 1][at] = low;
	((__u64 *)address)[0] = bpf_cpu_to_be64(high & shared.mask_ipv6[0]);
	((__u64 *)address)[1] = bpf_cpu_to_be64(low & (ipv4 ? shared.mask_ipv4 : shared.mask_ipv6[1]));
	*(__u32 *)kept = ipv4 ? shared.kept_ipv4 : shared.kept_ipv6;
}

static __always_inline __u64 mapped(__be32 address)
{
	return 0xffffULL << 32 | bpf_ntohl(address);
}

static __always_inline __u64 half(const struct in6_addr *address, int first)
{
	return (__u64)bpf_ntohl(address->in6_u.u6_addr32[first]) << 32 | bpf_ntohl(address->in6_u.u6_addr32[first + 1]);
}

/* Classifier.classify() of traffic.py, where keys decide. */
static __always_inline void put_class(__u8 *row, __u64 local_high, __u64 local_low, __u64 high, __u64 low)
{
	__u64 key = high ? high : low;
	__u32 at = shared.classifies - 1; /* 0; the verifier, which does not know it, need not follow each path */

	if (high ? key < CLASS_KEY_REST : key > CLASS_KEY_REST)
		key = CLASS_KEY_REST;
	for (__u32 step = CLASS_STEPS / 2; step; step /= 2)
		if (key >= shared.class_from[(at + step) & (CLASS_STEPS - 1)])
			at += step;
	at = shared.class[at & (CLASS_STEPS - 1)];
	PUT32(traffic_class, local_high == high && local_low == low ? CLASS_WITHIN_HOST : at);
}

static __always_inline void put_addresses(__u8 *row, __u32 at, struct sock_common *common)
{
	__u64 local_high = 0, local_low, remote_high = 0, remote_low;

	if (common->skc_family == AF_INET) {
		local_low = mapped(common->skc_rcv_saddr);
		remote_low = mapped(common->skc_daddr);
	} else {
		local_high = half(&common->skc_v6_rcv_saddr, 0);
		local_low = half(&common->skc_v6_rcv_saddr, 2);
		remote_high = half(&common->skc_v6_daddr, 0);
		remote_low = half(&common->skc_v6_daddr, 2);
	}
	put_address(row + ROW_AT_local_address, row + ROW_AT_local_prefix_length, at, 0, local_high, local_low);
	put_address(row + ROW_AT_remote_address, row + ROW_AT_remote_prefix_length, at, 1, remote_high, remote_low);
	if (shared.classifies)
		put_class(row, local_high, local_low, remote_high, remote_low);
}

static __always_inline void put_identity(__u8 *row, struct sock_common *common, __u32 uid)
{
	__u64 cookie = common->skc_cookie.counter;

	PUT64(cookie, cookie ? cookie : bpf_get_socket_cookie(common)); /* the call gives it one */
	PUT32(local_port, common->skc_num);
	PUT32(remote_port, bpf_ntohs(common->skc_dport));
	PUT32(state, common->skc_state);
	PUT32(uid, uid);
}

/* sock_i_ino() */
static __always_inline __u32 inode_of(struct sock *sk)
{
	struct sock___ino *knows = (void *)sk;
	struct socket_alloc *holder;

	if (bpf_core_field_exists(knows->sk_ino))
		return knows->sk_ino;
	holder = (void *)sk->sk_socket; /* only here: it has a cache line of its own */
	return holder ? BPF_CORE_READ(holder, vfs_inode.i_ino) : 0;
}

/* sock_cgroup_ptr() and cgroup_id() */
static __always_inline __u64 cgroup_of(struct sock *sk)
{
	struct sock_cgroup_data___tagged *old = (void *)&sk->sk_cgrp_data;
	__u64 tagged;

	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		return sk->sk_cgrp_data.cgroup->kn->id;
	if (!bpf_core_field_exists(sk->sk_cgrp_data))
		return 0;
	tagged = old->val;
	if (!tagged || tagged & 3)
		return ROOT_CGROUP_ID;
	return BPF_CORE_READ((struct cgroup *)tagged, kn, id);
}

static __always_inline bool keepalive_pending(struct inet_connection_sock *icsk)
{
	struct inet_connection_sock___keepalive *renamed = (void *)icsk;

	if (bpf_core_field_exists(renamed->icsk_keepalive_timer))
		return renamed->icsk_keepalive_timer.entry.pprev != 0;
	return icsk->icsk_inet.sk.sk_timer.entry.pprev != 0;
}

/* inet_sk_diag_fill() */
static __always_inline __u32 timer_of(struct inet_connection_sock *icsk)
{
	switch (icsk->icsk_pending) {
	case ICSK_TIME_RETRANS:
	case ICSK_TIME_LOSS_PROBE:
	case ICSK_TIME_REO_TIMEOUT:
		return TIMER_RETRANSMIT;
	case ICSK_TIME_PROBE0:
		return TIMER_PROBE0;
	}
	return keepalive_pending(icsk) ? TIMER_KEEPALIVE : TIMER_NONE;
}

static __always_inline void put_socket(__u8 *row, struct tcp_sock *tp, struct inet_connection_sock *icsk, struct sock *sk)
{
	__s32 unread = tp->rcv_nxt - tp->copied_seq;

	PUT32(timer, timer_of(icsk));
	PUT32(inode, inode_of(sk));
	PUT32(receive_queue, unread > 0 ? unread : 0); /* a FIN is counted in rcv_nxt, so it may be -1 */
	PUT32(send_queue, tp->write_seq - tp->snd_una);
	PUT64(cgroup_id, cgroup_of(sk));
	PUT64(pacing_rate, sk->sk_pacing_rate);
	PUT64(max_pacing_rate, sk->sk_max_pacing_rate);
}

/* tcp_get_info() */
static __always_inline void put_info(__u8 *row, struct tcp_sock *tp, struct inet_connection_sock *icsk)
{
	bool scaled = BPF_CORE_READ_BITFIELD(tp, rx_opt.wscale_ok);
	__s32 unsent = tp->write_seq - tp->snd_nxt;

	PUT32(ca_state, BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state));
	PUT32(retransmits, icsk->icsk_retransmits);
	PUT32(send_wscale, scaled ? BPF_CORE_READ_BITFIELD(tp, rx_opt.snd_wscale) : 0);
	PUT32(receive_wscale, scaled ? BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale) : 0);
	PUT32(rto_us, icsk->icsk_rto * USEC_PER_SEC / shared.hz); /* jiffies_to_usecs() */
	PUT32(snd_mss, tp->mss_cache);
	PUT32(unacked, tp->packets_out);
	PUT32(lost, tp->lost_out);
	PUT32(retrans, tp->retrans_out);
	PUT32(pmtu, icsk->icsk_pmtu_cookie);
	PUT32(rtt_us, tp->srtt_us >> 3);
	PUT32(rttvar_us, tp->mdev_us >> 2);
	PUT32(snd_ssthresh, tp->snd_ssthresh);
	PUT32(snd_cwnd, tp->snd_cwnd);
	PUT32(reordering, tp->reordering);
	PUT32(total_retrans, tp->total_retrans);
	PUT32(min_rtt_us, tp->rtt_min.s[0].v);
	PUT32(segs_out, tp->segs_out);
	PUT32(segs_in, tp->segs_in);
	PUT32(data_segs_out, tp->data_segs_out);
	PUT32(data_segs_in, tp->data_segs_in);
	PUT32(notsent_bytes, unsent > 0 ? unsent : 0);
	PUT32(delivered, tp->delivered);
	PUT32(delivered_ce, tp->delivered_ce);
	PUT32(snd_wnd, tp->snd_wnd);
	PUT64(bytes_acked, tp->bytes_acked);
	PUT64(bytes_received, tp->bytes_received);
	PUT64(bytes_sent, tp->bytes_sent);
	PUT64(bytes_retrans, tp->bytes_retrans);
}

/* tcp_compute_delivery_rate() */
static __always_inline void put_delivery_rate(__u8 *row, struct tcp_sock *tp)
{
	__u32 delivered = tp->rate_delivered, interval_us = tp->rate_interval_us;
	__u64 rate = 0;

	if (delivered && interval_us)
		rate = (__u64)delivered * tp->mss_cache * USEC_PER_SEC / interval_us;
	PUT64(delivery_rate, rate);
	PUT32(delivery_rate_app_limited, BPF_CORE_READ_BITFIELD(tp, rate_app_limited));
}

/* tcp_get_info_chrono_stats(): busy includes both limited times, and the one that is running counts until now. */
static __always_inline void put_times(__u8 *row, struct tcp_sock *tp)
{
	__u32 running = BPF_CORE_READ_BITFIELD(tp, chrono_type);
	__u32 since = running ? (__u32)bpf_jiffies64() - tp->chrono_start : 0;
	__u32 unit_us = USEC_PER_SEC / shared.hz;
	__u64 busy = (__u64)tp->chrono_stat[CHRONO_BUSY - 1] + (running == CHRONO_BUSY ? since : 0);
	__u64 rwnd = (__u64)tp->chrono_stat[CHRONO_RWND_LIMITED - 1] + (running == CHRONO_RWND_LIMITED ? since : 0);
	__u64 sndbuf =
		(__u64)tp->chrono_stat[CHRONO_SNDBUF_LIMITED - 1] + (running == CHRONO_SNDBUF_LIMITED ? since : 0);

	PUT64(busy_time_us, (busy + rwnd + sndbuf) * unit_us);
	PUT64(rwnd_limited_us, rwnd * unit_us);
	PUT64(sndbuf_limited_us, sndbuf * unit_us);
}

static __always_inline bool bbr_known(void)
{
	return bpf_core_field_exists(struct bbr, lt_use_bw) && bpf_core_field_exists(struct bbr, lt_bw) &&
	       bpf_core_field_exists(struct bbr, bw) && bpf_core_field_exists(struct bbr, min_rtt_us) &&
	       bpf_core_field_exists(struct bbr, pacing_gain) && bpf_core_field_exists(struct bbr, cwnd_gain);
}

/* bbr_get_info() and bbr_bw() */
static __always_inline void put_bbr(__u8 *row, struct tcp_sock *tp, struct inet_connection_sock *icsk)
{
	struct bbr *bbr = (void *)icsk->icsk_ca_priv;
	__u64 bandwidth;

	bandwidth = BPF_CORE_READ_BITFIELD(bbr, lt_use_bw) ? bbr->lt_bw : bbr->bw.s[0].v;
	PUT64(bbr_bw, bandwidth * tp->mss_cache * USEC_PER_SEC >> BBR_BW_SCALE);
	PUT32(bbr_min_rtt_us, bbr->min_rtt_us);
	PUT32(bbr_pacing_gain, BPF_CORE_READ_BITFIELD(bbr, pacing_gain));
	PUT32(bbr_cwnd_gain, BPF_CORE_READ_BITFIELD(bbr, cwnd_gain));
}

static __always_inline void put_algorithm(__u8 *row, struct tcp_sock *tp, struct inet_connection_sock *icsk, __u32 state)
{
	const __u64 *name = (const void *)icsk->icsk_ca_ops->name;
	__u64 begin = name[0], rest = name[1];

	PUT64(congestion_control, begin);
	*(__u64 *)(row + ROW_AT_congestion_control + 8) = rest;
	/* inet_sk_diag_fill() asks no algorithm about what the peer has closed. */
	if ((__u32)begin == ('b' | 'b' << 8 | 'r' << 16) && state < TCP_TIME_WAIT) {
		if (bbr_known()) {
			put_bbr(row, tp, icsk);
			return;
		}
		shared.unread++;
	}
	PUT64(bbr_bw, 0);
	PUT32(bbr_min_rtt_us, 0);
	PUT32(bbr_pacing_gain, 0);
	PUT32(bbr_cwnd_gain, 0);
}

static __always_inline int write_row(struct bpf_iter__tcp *context, bool ahead)
{
	struct sock_common *common = context->sk_common;
	struct inet_connection_sock *icsk;
	struct tcp_sock *tp;
	__u32 at;
	__u8 *row;

	if (!common || !(shared.states >> (common->skc_state & 31) & 1))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	at = shared.at;
	if (!tp || at >= READ_ROWS)
		return 0;
	shared.at = at + 1;
	row = shared.rows[at];
	icsk = &tp->inet_conn;
	if (ahead)
		touch_next(common);
	touch_lines(tp, icsk, &icsk->icsk_inet.sk);
	put_addresses(row, at, common);
	put_identity(row, common, context->uid);
	put_socket(row, tp, icsk, &icsk->icsk_inet.sk);
	put_info(row, tp, icsk);
	put_delivery_rate(row, tp);
	put_times(row, tp);
	put_algorithm(row, tp, icsk, common->skc_state);
	/* One byte, all that a read asks for, ends it; the reader finds in `at` how many rows there are. */
	if (at + 1 == READ_ROWS)
		bpf_seq_write(context->meta->seq, row, 1);
	return 0;
}

SEC("iter/tcp")
int write_rows(struct bpf_iter__tcp *context)
{
	return write_row(context, false);
}

SEC("iter/tcp")
int write_rows_ahead(struct bpf_iter__tcp *context)
{
	return write_row(context, true);
}
