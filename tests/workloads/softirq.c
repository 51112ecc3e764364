/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network softirqs: four times a second, from the first to the last moment in which the server computes for a request,
 * `flood` sends multicast packets on the loopback device of a network namespace of the workload's own, whose receive
 * packet steering gives all protocol work to the server's CPU.  Each packet goes to a thousand sockets.  Planted: the
 * gaps that the computing server thread sees in its clock.
 */
#include "common.h"
#include "storm.h"

#define WORK_NS	       (3 * NS_PER_MS)
#define SLICE_NS       (500 * NS_PER_US)
#define FLOOD_AT_MOST  (40 * NS_PER_MS)
#define RECEIVER_CNT   1000
#define STOLEN_PERCENT 75

/* Places in board->extra: how many requests the server has begun and ended to compute for. */
enum { BEGUN = 2, ENDED = 3 };

/* Nothing but that one request shall meet the packets, neither on its way nor in a queue. */
static void flood_one_request(struct run *run, struct packet_storm *storm)
{
	atomic_ulong *extra = run->board->extra;
	unsigned long begun = atomic_load(&extra[BEGUN]);
	uint64_t until_ts;

	while (atomic_load(&extra[BEGUN]) == begun && !run_stopped(run))
		sleep_for_ns(20 * NS_PER_US);
	until_ts = clock_now_ns() + FLOOD_AT_MOST;
	while (atomic_load(&extra[ENDED]) == begun && clock_now_ns() < until_ts)
		packet_storm_burst(run, storm, SLICE_NS, STOLEN_PERCENT);
}

static int flood_body(struct run *run)
{
	static struct packet_storm storm;
	uint64_t random_state = clock_now_ns();
	int err;

	thread_name("flood");
	err = packet_storm_open(&storm, RECEIVER_CNT);
	if (err)
		return err;
	thread_pin(CPU_LOAD);
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	while (!run_stopped(run)) {
		sleep_for_ns(random_between(&random_state, 180 * NS_PER_MS, 280 * NS_PER_MS));
		flood_one_request(run, &storm);
	}
	return 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	atomic_ulong *extra = worker->run->board->extra;
	uint64_t gaps_ns;

	(void)request;
	atomic_fetch_add(&extra[BEGUN], 1);
	gaps_ns = spin_watching_gaps(WORK_NS, NULL);
	atomic_fetch_add(&extra[ENDED], 1);
	return gaps_ns;
}

static void report(const struct run *run, FILE *out)
{
	unsigned long packet_cnt = atomic_load(&run->board->extra[0]);

	fprintf(out, ",\"packet_cnt\":%lu,\"packet_cost_ns\":%lu", packet_cnt,
		packet_cnt ? atomic_load(&run->board->extra[1]) / packet_cnt : 0);
}

static const struct workload workload = {
	.name = "softirq",
	.category = "irq.soft",
	.connection_cnt = 1,
	.rate_hz = 200,
	.default_duration_s = 8,
	.cpu_cnt_needed = 2,
	.prepare = packet_storm_prepare,
	.helper = flood_body,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
