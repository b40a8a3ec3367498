/* What the steering programs and tidegate_edge/steer/bpf/layout.py share.
 *
 * Maps are named by the number of their layout, LAYOUT there: raise it in both places when one of these changes, so
 * that no program reads what another layout wrote.
 */
#pragma once

#include <linux/types.h>

enum { ALGORITHM_NAME_LENGTH = 16 /* TCP_CA_NAME_MAX */, GENERATION_LENGTH = 16 };
enum { SETTINGS_PER_REQUEST = 1 }; /* settings.flags */

/* A key of the trie (struct bpf_lpm_trie_key). IPv4 is ::ffff:a.b.c.d, its length 96 more. */
struct prefix {
	__u32 length;
	__be32 address[4];
};

/* Zero, or empty: as the kernel has it. */
struct settings {
	struct prefix prefix;
	__u32 initcwnd; /* segments */
	__u32 initrwnd; /* segments */
	__u32 flags;
	__u64 min_bytes;
	char congestion_control[ALGORITHM_NAME_LENGTH];
	char generation[GENERATION_LENGTH];
};

enum window { WINDOW_NONE, WINDOW_SET, WINDOW_CUT, WINDOW_REFUSED };
enum algorithm { ALGORITHM_NONE, ALGORITHM_WAITING, ALGORITHM_SET, ALGORITHM_REFUSED };

/* What one connection was given, for as long as its socket lives. */
struct connection {
	struct settings given;
	__u64 counted_from; /* bytes written when the count began */
	__u64 received;     /* bytes received when it was last looked at */
	__u64 written;      /* bytes acknowledged then, and queued where the program knows */
	__u64 bytes_before; /* counted when the algorithm was set */
	__u32 window;
	__u32 algorithm;
};

struct counters {
	__u64 connections;
	__u64 switches; /* connections whose algorithm was set, at their start or later */
	__u64 bytes_before_switch;
	__u64 window_failures;
	__u64 algorithm_failures;
	__u64 storage_failures; /* connections that could not be followed */
};
