/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No server: a request goes through a queue from the thread that makes it to one of two workers, for intervals from a
 * symbol list with every role:
 *
 *   request_begin(request)     on the maker's thread, which then calls job_push(queue, request)
 *   job_pop(queue) -> request  on a worker's, which calls stage_work() and ends it by request_end(request)
 *
 * In stage_work() every request takes a lock that is no pthread mutex (a semaphore, so nobody knows who holds it but
 * from store_lock() and store_unlock()).  The thread `compactor` holds it for some milliseconds now and then.  Planted:
 * the time inside store_lock().  The time between push and pop is measured as well.
 */
#include "common.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#define WORKER_CNT 2
#define QUEUE_LEN  64
#define PROBED     __attribute__((noinline, noclone, used))

enum { EXTRA_QUEUE_NS, EXTRA_COUNTED };

struct job {
	uint64_t begin_ts, pushed_ts, popped_ts;
};

struct job_queue {
	pthread_mutex_t mutex;
	sem_t filled;
	struct job *jobs[QUEUE_LEN];
	unsigned head, tail;
};

struct store {
	sem_t sem;
};

/* Not static: they have to be found by name. */
void request_begin(struct job *job);
void request_end(struct job *job);
void job_push(struct job_queue *queue, struct job *job);
struct job *job_pop(struct job_queue *queue);
void store_lock(struct store *store);
void store_unlock(struct store *store);
uint64_t stage_work(struct job *job);

static struct job_queue job_queue = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct store the_store;

PROBED void request_begin(struct job *job)
{
	job->begin_ts = clock_now_ns();
}

PROBED void request_end(struct job *job)
{
	asm volatile("" : : "r"(job) : "memory");
}

PROBED void job_push(struct job_queue *queue, struct job *job)
{
	if (job)
		job->pushed_ts = clock_now_ns();
	pthread_mutex_lock(&queue->mutex);
	queue->jobs[queue->tail++ % QUEUE_LEN] = job;
	pthread_mutex_unlock(&queue->mutex);
	sem_post(&queue->filled);
}

PROBED struct job *job_pop(struct job_queue *queue)
{
	struct job *job;

	while (sem_wait(&queue->filled) && errno == EINTR)
		;
	pthread_mutex_lock(&queue->mutex);
	job = queue->jobs[queue->head++ % QUEUE_LEN];
	pthread_mutex_unlock(&queue->mutex);
	if (job)
		job->popped_ts = clock_now_ns();
	return job;
}

PROBED void store_lock(struct store *store)
{
	while (sem_wait(&store->sem) && errno == EINTR)
		;
}

PROBED void store_unlock(struct store *store)
{
	sem_post(&store->sem);
}

PROBED uint64_t stage_work(struct job *job)
{
	uint64_t start_ts, waited_ns;

	spin_work(100 * NS_PER_US);
	start_ts = clock_now_ns();
	store_lock(&the_store);
	waited_ns = clock_now_ns() - start_ts;
	spin_work(5 * NS_PER_US);
	store_unlock(&the_store);
	asm volatile("" : : "r"(job) : "memory");
	return waited_ns;
}

static void *compactor_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();

	thread_name("compactor");
	run_set_culprit(run);
	while (!run_stopped(run)) {
		sleep_for_ns(random_between(&random_state, 100 * NS_PER_MS, 250 * NS_PER_MS));
		store_lock(&the_store);
		sleep_for_ns(random_between(&random_state, 8 * NS_PER_MS, 14 * NS_PER_MS));
		store_unlock(&the_store);
	}
	return NULL;
}

static void *worker_body(void *arg)
{
	struct worker *worker = arg;

	thread_name("worker-%d", worker->idx);
	for (;;) {
		struct job *job = job_pop(&job_queue);
		uint64_t waited_ns;

		if (!job)
			return NULL;
		waited_ns = stage_work(job);
		request_end(job);
		if (job->begin_ts >= atomic_load(&worker->run->board->count_from_ts)) {
			atomic_fetch_add(&worker->run->board->extra[EXTRA_QUEUE_NS], job->popped_ts - job->pushed_ts);
			atomic_fetch_add(&worker->run->board->extra[EXTRA_COUNTED], 1);
		}
		run_sample(worker->run, job->begin_ts, clock_now_ns(), waited_ns);
		free(job);
	}
}

static void make_requests(struct run *run)
{
	uint64_t random_state = clock_now_ns();

	while (!run_stopped(run)) {
		struct job *job = calloc(1, sizeof(*job));

		if (!job)
			abort();
		request_begin(job);
		spin_work(20 * NS_PER_US);
		job_push(&job_queue, job);
		sleep_for_ns(random_between(&random_state, 1 * NS_PER_MS, 3 * NS_PER_MS));
	}
}

static int serve(struct run *run)
{
	static struct worker workers[WORKER_CNT];
	pthread_t compactor;
	int err;

	if (sem_init(&job_queue.filled, 0, 0) || sem_init(&the_store.sem, 0, 1))
		return -errno;
	err = thread_start_named(&compactor, compactor_body, run);
	for (int i = 0; !err && i < WORKER_CNT; i++) {
		workers[i].run = run;
		workers[i].idx = i;
		err = thread_start_named(&workers[i].thread, worker_body, &workers[i]);
	}
	if (err)
		return err;
	thread_name("maker");
	make_requests(run);
	for (int i = 0; i < WORKER_CNT; i++)
		job_push(&job_queue, NULL);
	for (int i = 0; i < WORKER_CNT; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_join(compactor, NULL);
	return 0;
}

static void report(const struct run *run, FILE *out)
{
	uint64_t cnt = atomic_load(&run->board->extra[EXTRA_COUNTED]);

	fprintf(out, ",\"queue_mean_ns\":%lu", cnt ? atomic_load(&run->board->extra[EXTRA_QUEUE_NS]) / cnt : 0);
}

static const struct workload workload = {
	.name = "stages",
	.category = "lock",
	.culprit_comm = "compactor",
	.rate_hz = 500,
	.default_duration_s = 6,
	.serve = serve,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
