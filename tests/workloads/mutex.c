/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A contended lock: the background thread `compactor` holds `table_lock` for some milliseconds, some four times a
 * second, and needs no CPU meanwhile.  Every request takes it briefly.  Planted: the time inside pthread_mutex_lock().
 */
#include "table.h"

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, compactor_body, run);
}

static const struct workload workload = {
	.name = "mutex",
	.category = "lock",
	.culprit_comm = "compactor",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.server_start = server_start,
	.handle = table_handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
