/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wake-ups that mean nothing: `compactor` holds `table_lock` for some milliseconds, some four times a second, and
 * meanwhile `poker` wakes whoever waits for the lock every 400 µs, without having had it.  Planted: the time inside
 * pthread_mutex_lock(), which is the compactor's doing.
 */
#include "table.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *poker_body(void *arg)
{
	(void)arg;
	thread_name("poker");
	thread_pin(CPU_LOAD);
	thread_urgent(PRIO_HOG);
	for (;;) {
		sleep_for_ns(400 * NS_PER_US);
		/* glibc waits on the first word. */
		syscall(SYS_futex, &table_lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;
	int err = thread_start_named(&thread, compactor_body, run);

	return err ? err : thread_start_named(&thread, poker_body, run);
}

static const struct workload workload = {
	.name = "spurious",
	.category = "lock",
	.culprit_comm = "compactor",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.server_start = server_start,
	.handle = table_handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
