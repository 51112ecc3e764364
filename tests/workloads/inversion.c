/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Priority inversion: the threads that serve requests come first, but the lock that they need is held by `low`, which
 * comes last and cannot run because of `medium`.  All of them have the same CPU.
 */
#include "holder.h"

#define PRIO_MEDIUM 5

static void *medium_body(void *arg)
{
	struct run *run = arg;

	thread_name("medium");
	thread_pin(CPU_SERVER);
	thread_urgent(PRIO_MEDIUM);
	run_set_culprit(run);
	hog_loop(run);
	return NULL;
}

static void *low_body(void *arg)
{
	thread_name("low");
	thread_pin(CPU_SERVER);
	thread_ordinary(0);
	holder_loop(arg);
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;
	int err = thread_start_named(&thread, medium_body, run);

	return err ? err : thread_start_named(&thread, low_body, run);
}

static const struct workload workload = {
	.name = "inversion",
	.category = "runq",
	.culprit_comm = "medium",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.prepare = holder_prepare,
	.server_start = server_start,
	.handle = table_handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
