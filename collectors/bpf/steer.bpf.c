/* TCP settings by the client's prefix: a sock_ops program for a cgroup of version 2.
 *
 * At establishment a connection gets its prefix's initial window, and its algorithm where that holds from the start;
 * else the callback of each round trip sets the algorithm once the connection has passed so many bytes. It takes
 * after the one trie that it found at establishment, so a new generation changes no open connection.
 *
 * Two programs, of which one is loaded. `steer_queued` counts bytes acknowledged and queued, and so knows of a
 * response as soon as its server has written it; it reads struct tcp_sock, which takes the kernel's BTF and
 * CAP_PERFMON. `steer_acked` counts bytes acknowledged, which the stable interface has.
 */
#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf.h>

#include "kernel.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steering.h"

char LICENSE[] SEC("license") = "GPL";

enum { AF_INET = 2, AF_INET6 = 10 };
enum { SOL_TCP = 6, TCP_CONGESTION = 13 }; /* include/uapi/linux/tcp.h */
enum { MAX_PREFIXES = 65536, MAPPED_LENGTH = 96, ADDRESS_LENGTH = 128 };

/* Only the sizes: with types, Linux 5.15 to 6.1 refuses to swap in a map that user space made without. */
struct trie {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct prefix));
	__uint(value_size, sizeof(struct settings));
};

/* One slot: a generation comes whole, by one update. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct trie);
} policy_1 SEC(".maps");

/* By the settings' prefix; made with its first connection, so that a prefix without any costs nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, struct counters);
} counters_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections_1 SEC(".maps");

/* Keeps clang from merging loads of the context into one of a moved pointer, which the verifier refuses. */
#define LOADED(value) asm volatile("" : "+r"(value))

/* In place of a prefix's counters where the kernel has no memory for them, so that there always are some: from those
 * without CAP_PERFMON Linux 5.10 and 6.1 refuse what would be done with a pointer that is NULL in a branch that is never
 * taken, as a processor may take it by speculation. */
static struct counters uncounted;

/* The offset is part of the instruction: where clang adds it to the pointer instead, behind two branches, the verifier
 * refuses the sum to those without CAP_PERFMON. */
#define COUNT(of, what, amount)                                                                                        \
	asm volatile("lock *(u64 *)(%0 + %1) += %2"                                                                    \
		     :                                                                                                 \
		     : "r"(of), "i"(offsetof(struct counters, what)), "r"((__u64)(amount))                             \
		     : "memory")

/* A key of the trie. Linux 6.1 lets those without CAP_PERFMON write no part of eight bytes of the stack that
 * hold a number it knows ("attempt to corrupt spilled pointer"): all of the stack is written by eight bytes at a time. */
union key {
	__u64 pairs[3];
	struct {
		__u32 unused;
		struct prefix prefix;
	};
};

/* Two words of which the first comes first in memory. */
static __always_inline __u64 pair(__u32 first, __u32 second)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u64)second << 32 | first;
#else
	return (__u64)first << 32 | second;
#endif
}

static __always_inline bool read_remote(struct bpf_sock_ops *ops, union key *remote)
{
	remote->pairs[0] = pair(0, ADDRESS_LENGTH);
	if (ops->family == AF_INET) {
		__be32 whole = ops->remote_ip4;

		LOADED(whole);
		remote->pairs[1] = 0;
		remote->pairs[2] = pair(bpf_htonl(0xffff), whole);
		return true;
	}
	if (ops->family == AF_INET6) {
		__be32 first = ops->remote_ip6[0], second = ops->remote_ip6[1];
		__be32 third = ops->remote_ip6[2], fourth = ops->remote_ip6[3];

		LOADED(first);
		LOADED(second);
		LOADED(third);
		LOADED(fourth);
		remote->pairs[1] = pair(first, second);
		remote->pairs[2] = pair(third, fourth);
		return true;
	}
	return false;
}

static __always_inline struct settings *settings_for(struct bpf_sock_ops *ops)
{
	struct settings *found;
	union key remote; /* an initialiser would lie in .rodata, whose empty BTF Linux 5.10 refuses */
	__u64 slot = 0;	  /* of which the map takes the first four bytes */
	void *trie;

	if (!read_remote(ops, &remote))
		return NULL;
	trie = bpf_map_lookup_elem(&policy_1, &slot);
	if (!trie)
		return NULL;
	found = bpf_map_lookup_elem(trie, &remote.prefix);
	if (!found)
		return NULL;
	/* A short IPv6 prefix such as ::/0 covers the mapped addresses too, but claims no IPv4 client. */
	if (found->prefix.length < MAPPED_LENGTH && !remote.pairs[1] && remote.prefix.address[2] == bpf_htonl(0xffff))
		return NULL;
	return found;
}

static __always_inline struct counters *or_uncounted(struct counters *found)
{
	return found ? found : &uncounted;
}

static __always_inline struct counters *counters_of(struct prefix *prefix)
{
	struct counters *found = bpf_map_lookup_elem(&counters_1, prefix);
	struct counters none = {};

	if (!found) {
		bpf_map_update_elem(&counters_1, prefix, &none, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&counters_1, prefix);
	}
	return or_uncounted(found);
}

static __always_inline __u32 set_window(struct bpf_sock_ops *ops, struct settings *settings)
{
	if (!settings->initcwnd)
		return WINDOW_NONE;
	/* tcp_init_transfer() starts at 1 where the handshake lost segments (RFC 5681 3.1): leave it there. */
	if (ops->snd_cwnd == 1)
		return WINDOW_CUT;
	if (bpf_setsockopt(ops, SOL_TCP, TCP_BPF_IW, &settings->initcwnd, sizeof settings->initcwnd))
		return WINDOW_REFUSED;
	return WINDOW_SET;
}

static __always_inline __u32 set_algorithm(struct bpf_sock_ops *ops, struct settings *settings,
					   struct counters *counted, __u64 bytes)
{
	char *name = settings->congestion_control;

	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, ALGORITHM_NAME_LENGTH)) {
		COUNT(counted, algorithm_failures, 1);
		return ALGORITHM_REFUSED;
	}
	COUNT(counted, switches, 1);
	COUNT(counted, bytes_before_switch, bytes);
	return ALGORITHM_SET;
}

static __always_inline void begin(struct bpf_sock_ops *ops)
{
	struct settings *settings = settings_for(ops);
	struct connection *connection;
	__u32 window, algorithm = ALGORITHM_NONE;
	struct counters *counted;
	struct bpf_sock *sk;

	if (!settings)
		return;
	counted = counters_of(&settings->prefix);
	COUNT(counted, connections, 1);
	window = set_window(ops, settings);
	if (window == WINDOW_REFUSED)
		COUNT(counted, window_failures, 1);
	if (settings->congestion_control[0] && !settings->min_bytes)
		algorithm = set_algorithm(ops, settings, counted, 0);

	sk = ops->sk;
	if (!sk)
		return;
	connection = bpf_sk_storage_get(&connections_1, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		COUNT(counted, storage_failures, 1);
		return;
	}
	connection->given = *settings;
	connection->counted_from = ops->bytes_acked;
	connection->received = ops->bytes_received;
	connection->written = connection->counted_from;
	connection->bytes_before = 0;
	connection->window = window;
	if (settings->congestion_control[0] && settings->min_bytes) {
		algorithm = ALGORITHM_WAITING;
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
	}
	connection->algorithm = algorithm;
}

static __always_inline __u64 queued_bytes(struct bpf_sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	return tp ? tp->write_seq - tp->snd_una : 0;
}

static __always_inline void round_trip(struct bpf_sock_ops *ops, bool with_queued)
{
	struct connection *connection;
	__u64 acked, received, written, bytes;
	struct counters *counted;
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return;
	connection = bpf_sk_storage_get(&connections_1, sk, NULL, 0);
	if (!connection || connection->algorithm != ALGORITHM_WAITING)
		return;
	acked = ops->bytes_acked;
	received = ops->bytes_received;
	written = with_queued ? acked + queued_bytes(sk) : acked;
	/* The round trip before saw all of the response before: it ended there. Acknowledgements came later than that,
	 * and where only they are known, it ended at the latest here. */
	if (connection->given.flags & SETTINGS_PER_REQUEST && received != connection->received)
		connection->counted_from = with_queued ? connection->written : acked;
	connection->received = received;
	connection->written = written;
	bytes = written - connection->counted_from;
	if (bytes < connection->given.min_bytes)
		return;
	connection->bytes_before = bytes;
	counted = or_uncounted(bpf_map_lookup_elem(&counters_1, &connection->given.prefix));
	connection->algorithm = set_algorithm(ops, &connection->given, counted, bytes);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTT_CB_FLAG);
}

static __always_inline void offer_window(struct bpf_sock_ops *ops)
{
	struct settings *settings = settings_for(ops);

	if (settings && settings->initrwnd)
		ops->reply = settings->initrwnd;
}

static __always_inline int steer(struct bpf_sock_ops *ops, bool with_queued)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_RWND_INIT:
		offer_window(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		round_trip(ops, with_queued);
		break;
	}
	return 1;
}

SEC("sockops")
int steer_queued(struct bpf_sock_ops *ops)
{
	return steer(ops, true);
}

SEC("sockops")
int steer_acked(struct bpf_sock_ops *ops)
{
	return steer(ops, false);
}
