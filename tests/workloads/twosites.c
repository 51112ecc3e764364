/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A lock in a function with two callers: `compactor` holds the table for some milliseconds; find_entry() and
 * store_entry() both take it by lock_table(), so that neither of them is to blame for all of it.  Planted: the time
 * inside lock_table().
 */
#include "compactor.h"

struct job {
	uint64_t dice;
	uint64_t waited_ns;
};

/* Not static: a report may name it. */
extern pthread_mutex_t table_mutex;
pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table_version;

KEPT static uint64_t lock_table(struct job *job)
{
	uint64_t start_ts = clock_now_ns();

	pthread_mutex_lock(&table_mutex);
	job->waited_ns += clock_now_ns() - start_ts;
	return ++table_version;
}

KEPT static uint64_t find_entry(struct job *job)
{
	uint64_t version = lock_table(job);

	burn(20 * NS_PER_US);
	pthread_mutex_unlock(&table_mutex);
	return version;
}

KEPT static uint64_t store_entry(struct job *job)
{
	uint64_t version;

	burn(60 * NS_PER_US + random_next(&job->dice) % (6 * NS_PER_US));
	version = lock_table(job);
	burn(30 * NS_PER_US);
	pthread_mutex_unlock(&table_mutex);
	return version;
}

KEPT static uint64_t compute_entry(struct job *job)
{
	burn(150 * NS_PER_US + random_next(&job->dice) % (15 * NS_PER_US));
	return job->dice & 1;
}

KEPT static uint64_t parse_job(struct job *job)
{
	burn(80 * NS_PER_US + random_next(&job->dice) % (8 * NS_PER_US));
	return job->dice & 1;
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct job job = {.dice = request->dice | 1ULL << 40};
	uint64_t sum;

	(void)worker;
	sum = parse_job(&job);
	sum += find_entry(&job);
	sum += compute_entry(&job);
	sum += store_entry(&job);
	return job.waited_ns + (sum & 1);
}

static void *compactor_body(void *arg)
{
	compact(arg, &table_mutex, (struct range){80 * NS_PER_MS, 160 * NS_PER_MS},
		(struct range){8 * NS_PER_MS, 16 * NS_PER_MS});
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, compactor_body, run);
}

static const struct workload workload = {
	.name = "twosites",
	.category = "lock",
	.culprit_comm = "compactor",
	.planted = "lock_table",
	.beneath = "pthread_mutex_lock\n___pthread_mutex_lock\n__pthread_mutex_lock\n__lll_lock_wait",
	.connection_cnt = 4,
	.rate_hz = 80,
	.default_duration_s = 10,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
