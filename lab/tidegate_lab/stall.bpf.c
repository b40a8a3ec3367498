/* Takes a CPU away as a hypervisor does: by turns it runs, and stands, for times drawn around their means.
 *
 * A timer's callback spins in softirq context, on the CPU that started it. Until it returns, that CPU runs no task, no
 * timer of TCP's pacing, no received packet and no tasklet. The timer ends with the map, and so with who loaded it.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

enum { CLOCK_MONOTONIC = 1, PINNED = 1 << 1 };	   /* linux/time.h; linux/bpf.h, BPF_F_TIMER_CPU_PIN */
enum { MOST_TURNS = 1 << 23, MOST_NS = 50000000 }; /* linux/bpf_verifier.h, BPF_MAX_LOOPS; no watchdog minds 50 ms */

struct request {
	__u64 on_ns;
	__u64 off_ns;
	__u32 seed; /* not 0 */
};

struct stall {
	struct bpf_timer timer;
	struct request request;
	__u64 stood_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stall);
} stalls SEC(".maps");

/* Evenly between half of the mean and one and a half, by xorshift (Marsaglia, 2003, doi:10.18637/jss.v008.i14). */
static __always_inline __u64 about(__u64 mean_ns, struct request *request)
{
	__u32 drawn = request->seed;

	drawn ^= drawn << 13;
	drawn ^= drawn >> 17;
	drawn ^= drawn << 5;
	request->seed = drawn;
	return mean_ns / 2 + (mean_ns * (drawn >> 16) >> 16);
}

static long is_over(__u32 turn, __u64 *end_ns)
{
	(void)turn;
	return bpf_ktime_get_ns() >= *end_ns;
}

static int stand(void *map, __u32 *key, struct stall *stall)
{
	__u64 begin_ns = bpf_ktime_get_ns(), length_ns = about(stall->request.off_ns, &stall->request), end_ns;

	(void)map;
	(void)key;
	end_ns = begin_ns + (length_ns < MOST_NS ? length_ns : MOST_NS);
	bpf_loop(MOST_TURNS, is_over, &end_ns, 0);
	stall->stood_ns += bpf_ktime_get_ns() - begin_ns;
	bpf_timer_start(&stall->timer, about(stall->request.on_ns, &stall->request), PINNED);
	return 0;
}

SEC("syscall")
int begin(struct request *request)
{
	struct stall *stall;
	__u32 only = 0;

	stall = bpf_map_lookup_elem(&stalls, &only);
	if (!stall)
		return 1;
	stall->request = *request;
	if (bpf_timer_init(&stall->timer, &stalls, CLOCK_MONOTONIC) || bpf_timer_set_callback(&stall->timer, stand))
		return 1;
	return bpf_timer_start(&stall->timer, stall->request.on_ns, PINNED) ? 1 : 0;
}
