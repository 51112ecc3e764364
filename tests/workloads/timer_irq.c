/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Local timer interrupts: four times a second thousands of timers expire together on the server's CPU, while it
 * computes for a request.  `ticker` has armed them there long before, at a priority at which the server never waits for
 * it.  No thread is woken by them.  Planted: the gaps that the computing server thread sees in its clock meanwhile.
 */
#include "common.h"
#include "storm.h"

#define WORK_NS         (1500 * NS_PER_US)
#define STORM_NS        (12 * NS_PER_MS)
#define TIMERS_AT_LEAST 5000

static int ticker_body(struct run *run)
{
	static struct timer_storm storm;
	uint64_t random_state = clock_now_ns(), at_ts;
	int err;

	thread_name("ticker");
	thread_pin(CPU_SERVER);
	thread_urgent(PRIO_HOG);
	err = timer_storm_open_for(&storm, STORM_NS);
	if (err)
		return err;
	thread_ordinary(0);
	atomic_store(&run->board->extra[0], (unsigned long)storm.timer_cnt);
	atomic_store(&run->board->extra[1], storm.cost_ns);
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	while (!run_stopped(run)) {
		at_ts = clock_now_ns() + random_between(&random_state, 180 * NS_PER_MS, 280 * NS_PER_MS);
		/* Twice the time that it should take: the machine may have become slower. */
		atomic_store(&run->board->storm.to_ts, at_ts + 2 * STORM_NS);
		atomic_store(&run->board->storm.from_ts, at_ts);
		timer_storm_arm(&storm, at_ts, 0);
		if (clock_now_ns() + AIM_AHEAD_NS < at_ts)
			run_aim(run, at_ts - WORK_NS / 2);
		sleep_until_ns(at_ts + STORM_NS);
	}
	return 0;
}

/* Asked in the driver, where a refusal can still become a skip. */
static int prepare(struct run *run)
{
	int room = timer_storm_room();

	return room < TIMERS_AT_LEAST ? run_skip(run, "needs %d open files, may have %d", TIMERS_AT_LEAST, room) : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct gaps gaps = spin_watching_gaps(WORK_NS, &worker->run->board->storm);

	(void)request;
	worker->unclear_ns = gaps.outside_ns;
	return gaps.within_ns;
}

static void report(const struct run *run, FILE *out)
{
	fprintf(out, ",\"timer_cnt\":%lu,\"expiry_cost_ns\":%lu", atomic_load(&run->board->extra[0]),
		atomic_load(&run->board->extra[1]));
}

static const struct workload workload = {
	.name = "timer_irq",
	.category = "irq.timer",
	.connection_cnt = 1,
	.rate_hz = 200,
	.default_duration_s = 8,
	.cpu_cnt_needed = 2,
	.prepare = prepare,
	.helper = ticker_body,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
