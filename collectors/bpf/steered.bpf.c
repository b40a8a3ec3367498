/* What each connection was given: a BPF iterator over the storage that steer.bpf.c keeps with sockets.
 *
 * It reads the kernel's own list, so it is exact for as long as a socket lives and costs connections nothing.
 */
#include "kernel.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steering.h"

char LICENSE[] SEC("license") = "GPL";

#define AF_INET 2

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	struct connection *value;
} __attribute__((preserve_access_index));

struct record {
	__be32 remote[4];
	__u64 cookie; /* 0: nobody asked for it yet */
	__u32 remote_port;
	__u32 local_port;
	__u32 netns; /* inode */
	__u32 unused;
	struct connection connection;
};

SEC("iter/bpf_sk_storage_map")
int write_steered(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct connection *connection = context->value;
	struct sock *sk = context->sk;
	struct sock_common *common;
	struct record record = {};

	if (!sk || !connection)
		return 0;
	common = &sk->__sk_common;
	if (common->skc_family == AF_INET) {
		record.remote[2] = bpf_htonl(0xffff);
		record.remote[3] = common->skc_daddr;
	} else {
		for (int word = 0; word < 4; word++)
			record.remote[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
	}
	record.cookie = common->skc_cookie.counter;
	record.remote_port = bpf_ntohs(common->skc_dport);
	record.local_port = common->skc_num;
	record.netns = common->skc_net.net->ns.inum;
	record.connection = *connection;
	bpf_seq_write(context->meta->seq, &record, sizeof record);
	return 0;
}
