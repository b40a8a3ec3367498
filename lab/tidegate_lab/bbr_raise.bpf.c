/* Congestion control algorithms that are the kernel's BBR, called through its kfuncs (struct_ops).
 *
 * `bbr_wrapped` is BBR and nothing else, to compare with. `bbr_raise` paces faster while less is in flight than BBR
 * believes the path holds, although bytes wait: the sender's CPU came late, and its pacing has to make up for it. The
 * idea is that of Elmenhorst and Aschenbruck, "2BRobust", arXiv 2601.05665; the bounds below are our own. After a stall
 * nothing is in flight, and for a round trip no acknowledgement ends the haste: all of BBR's window, twice the path,
 * may follow in one burst. `bbr_raise_bound` holds the window at the path meanwhile.
 *
 * The kernel must have BBR built in, or its module loaded before. Without TCP_CONG_NON_RESTRICTED only those with
 * CAP_NET_ADMIN choose these algorithms.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* Raised below 3/4 of the path, the lowest gain of a healthy flow's cycle (bbr_pacing_gain), by BBR's own start-up gain
 * (bbr_high_gain, 2/ln 2). */
enum { BELOW_PERCENT = 75, RAISED_PERCENT = 289 };
enum { BW_SCALE = 24, PROBE_BW = 2, LEAST_WINDOW = 4 }; /* net/ipv4/tcp_bbr.c; bbr_cwnd_min_target */
enum { TCP_CA_DISORDER = 1 };	     /* include/uapi/linux/tcp.h: above it are CWR, recovery and loss */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/net/sock.h, include/net/inet_connection_sock.h, include/linux/tcp.h, net/ipv4/tcp_bbr.c */
struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 snd_cwnd;
	__u32 app_limited;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct bbr {
	__u32 min_rtt_us;
	struct minmax bw;
	__u32 mode : 3;
	__u32 lt_use_bw : 1;
};

struct rate_sample {
	int losses;
};

enum tcp_ca_event { CA_EVENT_TX_START };

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs) __ksym;
extern __u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern __u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern __u32 bbr_ssthresh(struct sock *sk) __ksym;
extern __u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, __u8 state) __ksym;

/* Of one socket: struct_ops may not answer INET_DIAG_BBRINFO. */
struct sender {
	__u64 path; /* bytes, BBR's bandwidth x min_rtt */
	__u64 acks;
	__u64 raised; /* acknowledgements upon which pacing was raised */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sender);
} senders SEC(".maps");

/* BPF_PROG() hands each program its context besides its arguments. */
#pragma clang diagnostic ignored "-Wunused-parameter"

static __always_inline bool sender_holds_back(struct tcp_sock *tp, struct bbr *bbr, __u64 path)
{
	__u64 flying = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out; /* tcp_packets_in_flight() */

	return BPF_CORE_READ_BITFIELD(bbr, mode) == PROBE_BW && !BPF_CORE_READ_BITFIELD(bbr, lt_use_bw) &&
	       BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) <= TCP_CA_DISORDER && !tp->app_limited &&
	       tp->write_seq != tp->snd_nxt && 100 * flying < BELOW_PERCENT * path;
}

enum raising { NOT, FREELY, BOUND };

static __always_inline void control(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs, enum raising raising)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr *bbr = (struct bbr *)tp->inet_conn.icsk_ca_priv;
	struct sender *sender;
	__u64 path, rate;

	bbr_main(sk, ack, flag, rs); /* sets the rate anew each time, so that nothing adds up */
	path = (__u64)bbr->bw.s[0].v * bbr->min_rtt_us >> BW_SCALE;
	sender = bpf_sk_storage_get(&senders, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (sender) {
		sender->path = path * tp->mss_cache;
		sender->acks++;
	}
	if (raising == NOT || !sender_holds_back(tp, bbr, path))
		return;
	rate = sk->sk_pacing_rate * RAISED_PERCENT / 100;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	if (raising == BOUND && tp->snd_cwnd > path + LEAST_WINDOW)
		tp->snd_cwnd = path + LEAST_WINDOW;
	if (sender)
		sender->raised++;
}

SEC("struct_ops")
void BPF_PROG(wrapped_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, ack, flag, rs, NOT);
}

SEC("struct_ops")
void BPF_PROG(raising_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, ack, flag, rs, FREELY);
}

SEC("struct_ops")
void BPF_PROG(bound_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, ack, flag, rs, BOUND);
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	bbr_init(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return bbr_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	bbr_cwnd_event(sk, event);
}

SEC("struct_ops")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return bbr_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, __u8 state)
{
	bbr_set_state(sk, state);
}

#define ALGORITHM(of_name, of_control)                                                                                 \
	SEC(".struct_ops")                                                                                             \
	struct tcp_congestion_ops of_name = {                                                                          \
		.init = (void *)init,                                                                                  \
		.cong_control = (void *)of_control,                                                                    \
		.sndbuf_expand = (void *)sndbuf_expand,                                                                \
		.undo_cwnd = (void *)undo_cwnd,                                                                        \
		.cwnd_event = (void *)cwnd_event,                                                                      \
		.ssthresh = (void *)ssthresh,                                                                          \
		.min_tso_segs = (void *)min_tso_segs,                                                                  \
		.set_state = (void *)set_state,                                                                        \
		.name = #of_name,                                                                                      \
	}

ALGORITHM(bbr_wrapped, wrapped_control);
ALGORITHM(bbr_raise, raising_control);
ALGORITHM(bbr_raise_bound, bound_control);
