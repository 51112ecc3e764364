/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for a CPU: the process `backup` has the server's CPU to itself for some milliseconds, some four times a
 * second. Planted: the server thread's own run_delay (/proc/PID/task/TID/schedstat) since its previous request, which
 * also counts the wait before the request is read.
 */
#include "common.h"

#define WORK_NS (200 * NS_PER_US)

struct own {
	int delay_fd;
	uint64_t delay_ns;
};

static int backup_body(struct run *run)
{
	uint64_t random_state = clock_now_ns(), until_ts;

	thread_name("backup");
	thread_pin(CPU_SERVER);
	thread_urgent(PRIO_HOG);
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	while (!run_stopped(run)) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		until_ts = clock_now_ns() + random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS);
		while (clock_now_ns() < until_ts)
			;
	}
	return 0;
}

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->delay_fd = run_delay_open();
	return own->delay_fd < 0 ? own->delay_fd : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	(void)worker;
	(void)request;
	spin_work(WORK_NS);
	return 0;
}

/* `backup` may come while the reply is sent, so the delay is read behind it. */
static uint64_t planted_when_sent(struct worker *worker)
{
	struct own *own = worker->own;
	uint64_t before_ns = own->delay_ns;

	own->delay_ns = run_delay_read(own->delay_fd);
	return own->delay_ns - before_ns;
}

static const struct workload preempt = {
	.name = "preempt",
	.category = "runq",
	.culprit_comm = "backup",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.helper = backup_body,
	.thread_start = thread_start,
	.handle = handle,
	.planted_when_sent = planted_when_sent,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &preempt);
}
