/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server behind `make diagnose`: every request counts itself under `stats_lock`, and the background thread
 * `flusher` holds that lock while it writes the statistics to disk, record by record, a sync each.  Runs until it is
 * told to stop.  Planted: the time inside pthread_mutex_lock().
 */
#include "common.h"

#include <unistd.h>

#define FILE_SZ        (1 << 20)
#define RECORD_SZ      4096
#define FLUSH_AT_LEAST (20 * NS_PER_MS)

/* Not static: a report may name it. */
extern pthread_mutex_t stats_lock;
pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t stats_request_cnt;

static void stats_flush(int fd)
{
	static char record[RECORD_SZ];
	uint64_t start_ts = clock_now_ns();
	off_t off = 0;

	do {
		if (pwrite(fd, record, sizeof(record), off) < 0 || fsync(fd))
			break;
		off = (off + RECORD_SZ) % FILE_SZ;
	} while (clock_now_ns() - start_ts < FLUSH_AT_LEAST);
}

static void *flusher_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();
	int fd = disk_file_open(FILE_SZ);

	thread_name("flusher");
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		pthread_mutex_lock(&stats_lock);
		/* Without a disk the lock is held as long. */
		if (fd < 0)
			sleep_for_ns(FLUSH_AT_LEAST);
		else
			stats_flush(fd);
		pthread_mutex_unlock(&stats_lock);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, flusher_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, waited_ns;

	(void)request;
	spin_work(random_between(&worker->random_state, 50 * NS_PER_US, 250 * NS_PER_US));
	start_ts = clock_now_ns();
	pthread_mutex_lock(&stats_lock);
	waited_ns = clock_now_ns() - start_ts;
	stats_request_cnt++;
	pthread_mutex_unlock(&stats_lock);
	return waited_ns;
}

static const struct workload workload = {
	.name = "demo",
	.category = "lock",
	.culprit_comm = "flusher",
	.connection_cnt = 6,
	.rate_hz = 100,
	.default_duration_s = 0,
	.spread = 1,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
