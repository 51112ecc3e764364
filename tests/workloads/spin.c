/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An independent witness for the accounting of interrupt time: a server thread per CPU whose requests only read the
 * clock for 2 ms, and add up the gaps: `gap_ns` of `wall_ns` is what interrupts have taken from the requests, without
 * those during which another thread got the CPU.  Half of the time `noise` has network softirqs run on the first CPU,
 * and timers expire there every 100 µs: timer interrupts inside softirqs inside requests.
 */
#include "common.h"
#include "storm.h"

#include <sys/resource.h>

#define WORK_NS       (2 * NS_PER_MS)
#define RECEIVER_CNT  500
#define BURST_CNT     15
#define BURST_PACKETS 10
#define TIMER_CNT     500
#define TIMER_STEP    (100 * NS_PER_US)

static int noise_body(struct run *run)
{
	static struct packet_storm packets;
	static struct timer_storm timers;
	int err;

	thread_name("noise");
	err = packet_storm_open(&packets, RECEIVER_CNT);
	if (!err)
		err = timer_storm_open(&timers, TIMER_CNT);
	if (err)
		return err;
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	while (!run_stopped(run)) {
		thread_pin(CPU_SERVER);
		timer_storm_arm(&timers, clock_now_ns() + 3 * NS_PER_MS, TIMER_STEP);
		thread_pin(CPU_LOAD);
		for (int i = 0; i < BURST_CNT; i++) {
			packet_storm_send(&packets, BURST_PACKETS, 5 * NS_PER_MS);
			sleep_for_ns(2 * NS_PER_MS);
		}
		sleep_for_ns(TIMER_CNT * TIMER_STEP);
	}
	return 0;
}

static long preempted_cnt(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct board *board = worker->run->board;
	uint64_t count_from_ts = atomic_load(&board->count_from_ts), start_ts, wall_ns;
	struct gaps gaps;
	long preempted_before = preempted_cnt();

	start_ts = clock_now_ns();
	gaps = spin_watching_gaps(WORK_NS, NULL);
	wall_ns = clock_now_ns() - start_ts;
	if (count_from_ts && request->sent_ts >= count_from_ts && preempted_cnt() == preempted_before) {
		atomic_fetch_add(&board->extra[0], gaps.within_ns);
		atomic_fetch_add(&board->extra[1], wall_ns);
		atomic_fetch_add(&board->extra[2], gaps.cnt);
	}
	return gaps.within_ns;
}

static void report(const struct run *run, FILE *out)
{
	fprintf(out, ",\"gap_ns\":%lu,\"wall_ns\":%lu,\"gap_cnt\":%lu", atomic_load(&run->board->extra[0]),
		atomic_load(&run->board->extra[1]), atomic_load(&run->board->extra[2]));
}

static const struct workload workload = {
	.name = "spin",
	.category = "irq.soft",
	.culprit_comm = "noise",
	.connection_cnt = 2,
	.rate_hz = 150,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.spread = 1,
	.prepare = packet_storm_prepare,
	.helper = noise_body,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
