/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Network softirqs: four times a second, while the server computes for a request,
 * `flood` sends multicast packets on the loopback device of a network namespace of the workload's own, whose receive
 * packet steering gives all protocol work to the server's CPU.  Each packet goes to a thousand sockets.  Planted: the
 * gaps that the computing server thread sees in its clock meanwhile.
 */
#include "common.h"
#include "storm.h"

#define WORK_NS       (3 * NS_PER_MS)
#define RECEIVER_CNT  1000
#define BATCH_CNT     3
#define BATCH_PACKETS 32
#define PATIENCE_NS   (20 * NS_PER_MS)

/* Places in board->extra: how many requests the server has begun and ended to compute for; how many were flooded. */
enum { BEGUN, ENDED, FLOODS, FLOOD_NS };

/* Nothing but that one request shall meet the packets, neither on its way nor in a queue. */
static void flood_one_request(struct run *run, struct packet_storm *storm)
{
	atomic_ulong *extra = run->board->extra;
	unsigned long begun = atomic_load(&extra[BEGUN]);
	uint64_t start_ts, end_ts;

	while (atomic_load(&extra[BEGUN]) == begun && !run_stopped(run))
		sleep_for_ns(20 * NS_PER_US);
	start_ts = clock_now_ns();
	atomic_store(&run->board->storm.from_ts, start_ts);
	atomic_store(&run->board->storm.to_ts, 0);
	for (int i = 0; i < BATCH_CNT && atomic_load(&extra[ENDED]) == begun; i++)
		packet_storm_send(storm, BATCH_PACKETS, PATIENCE_NS);
	end_ts = clock_now_ns();
	atomic_store(&run->board->storm.to_ts, end_ts);
	atomic_fetch_add(&extra[FLOODS], 1);
	atomic_fetch_add(&extra[FLOOD_NS], end_ts - start_ts);
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
	thread_urgent(PRIO_SERVER);
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
	struct span *storm = &worker->run->board->storm;
	struct gaps gaps;

	(void)request;
	atomic_fetch_add(&extra[BEGUN], 1);
	gaps = spin_watching_gaps(WORK_NS, storm);
	atomic_fetch_add(&extra[ENDED], 1);
	/* The flood ends after the request's work: its last packets would hold up the reply, where no gap is measured.
	 */
	while (atomic_load(&storm->from_ts) && !atomic_load(&storm->to_ts) && !run_stopped(worker->run)) {
		struct gaps more = spin_watching_gaps(20 * NS_PER_US, storm);

		gaps.within_ns += more.within_ns;
		gaps.outside_ns += more.outside_ns;
	}
	worker->unclear_ns = gaps.outside_ns;
	return gaps.within_ns;
}

static void report(const struct run *run, FILE *out)
{
	fprintf(out, ",\"flood_cnt\":%lu,\"flood_ns\":%lu", atomic_load(&run->board->extra[FLOODS]),
		atomic_load(&run->board->extra[FLOOD_NS]));
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
