/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for a CPU: the process `backup` has the server's CPU to itself for some milliseconds, some four times a
 * second. Planted: the server thread's own run_delay (/proc/PID/task/TID/schedstat) since its previous request, which
 * also counts the wait before the request is read.  The scheduler counts run_delay from the moment at which the CPU
 * takes the woken thread into its queue.  Where the machine itself stands still between the wake-up and that moment,
 * the thread waits for the CPU as well: time that is neither run_delay nor the thread's CPU time is not clear.
 */
#include "common.h"

#define WORK_NS (200 * NS_PER_US)

struct own {
	int delay_fd;
	uint64_t delay_ns;
	uint64_t cpu_ns;
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
static uint64_t planted_when_sent(struct worker *worker, const struct request *request)
{
	struct own *own = worker->own;
	uint64_t passed_ns = clock_now_ns() - request->sent_ts;
	uint64_t delay_ns = run_delay_read(own->delay_fd) - own->delay_ns;
	uint64_t cpu_ns = thread_cpu_ns() - own->cpu_ns;

	own->delay_ns += delay_ns;
	own->cpu_ns += cpu_ns;
	worker->unclear_ns = passed_ns > delay_ns + cpu_ns ? passed_ns - delay_ns - cpu_ns : 0;
	return delay_ns;
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
