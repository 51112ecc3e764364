// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * No server: queues in shared memory of several kinds, each with threads `KIND-in` that put jobs in and `KIND-out` that
 * take them out, and what looks like one and is none, with threads named after it.  Built without optimisation, with
 * much of it, and stripped: what finds queues must find them from the machine code.
 *
 *   queues [SECONDS]      prints `ready`, then what went through each kind when it ends
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <unistd.h>

#define SECONDS_DEFAULT 60
#define PAUSE_US        1500
#define RING_SZ         64
#define TABLE_SZ        16
#define BOTH_CNT        3 /* threads of what is no queue */

struct job {
	STAILQ_ENTRY(job) single;
	TAILQ_ENTRY(job) twin;
	uint64_t key;
	uint64_t work;
};

static volatile uint64_t work_done;

static void job_do(const struct job *job)
{
	uint64_t sum = job->work;

	for (int i = 0; i < 200; i++)
		sum += (uint64_t)i * job->key;
	__atomic_fetch_add(&work_done, sum, __ATOMIC_RELAXED);
}

static struct job *job_new(uint64_t key)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		exit(1);
	job->key = key;
	job->work = key * 3;
	return job;
}

/* --- sys/queue.h: one that is linked one way, with a condition ---------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	STAILQ_HEAD(, job) jobs;
} single = {.lock = PTHREAD_MUTEX_INITIALIZER,
	    .filled = PTHREAD_COND_INITIALIZER,
	    .jobs = STAILQ_HEAD_INITIALIZER(single.jobs)};

static void single_push(struct job *job)
{
	pthread_mutex_lock(&single.lock);
	STAILQ_INSERT_TAIL(&single.jobs, job, single);
	pthread_cond_signal(&single.filled);
	pthread_mutex_unlock(&single.lock);
}

static struct job *single_pop(void)
{
	struct job *job;

	pthread_mutex_lock(&single.lock);
	while (STAILQ_EMPTY(&single.jobs))
		pthread_cond_wait(&single.filled, &single.lock);
	job = STAILQ_FIRST(&single.jobs);
	STAILQ_REMOVE_HEAD(&single.jobs, single);
	pthread_mutex_unlock(&single.lock);
	return job;
}

/* --- … and both ways; whoever takes out looks, and sleeps where there is nothing -----------------------------------
 */

static pthread_mutex_t twin_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, job) twins = TAILQ_HEAD_INITIALIZER(twins);

static void twin_push(struct job *job)
{
	pthread_mutex_lock(&twin_lock);
	TAILQ_INSERT_TAIL(&twins, job, twin);
	pthread_mutex_unlock(&twin_lock);
}

static struct job *twin_pop(void)
{
	struct job *job;

	pthread_mutex_lock(&twin_lock);
	job = TAILQ_FIRST(&twins);
	if (job)
		TAILQ_REMOVE(&twins, job, twin);
	pthread_mutex_unlock(&twin_lock);
	return job;
}

/* --- a ring of pointers; the result goes where an argument points to ------------------------------------------------
 */

struct ring {
	pthread_mutex_t lock;
	struct job *slots[RING_SZ];
	unsigned int head, tail;
};

static struct ring ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int ring_push(struct ring *to, struct job *job)
{
	int fits;

	if (pthread_mutex_lock(&to->lock))
		return 0;
	fits = to->tail - to->head < RING_SZ;
	if (fits)
		to->slots[to->tail++ % RING_SZ] = job;
	pthread_mutex_unlock(&to->lock);
	return fits;
}

static int ring_pop(struct ring *from, struct job **job)
{
	int there;

	if (pthread_mutex_lock(&from->lock))
		return 0;
	there = from->head != from->tail;
	if (there)
		*job = from->slots[from->head++ % RING_SZ];
	pthread_mutex_unlock(&from->lock);
	return there;
}

/* --- under two locks, of which the inner one is given back first -------------------------------------------------- */

static struct {
	pthread_mutex_t outer, inner;
	struct job *slots[RING_SZ];
	unsigned int head, tail;
	uint64_t passed;
} nested = {.outer = PTHREAD_MUTEX_INITIALIZER, .inner = PTHREAD_MUTEX_INITIALIZER};

static int nested_push(struct job *job)
{
	int fits;

	pthread_mutex_lock(&nested.outer);
	pthread_mutex_lock(&nested.inner);
	nested.passed++;
	pthread_mutex_unlock(&nested.inner);
	fits = nested.tail - nested.head < RING_SZ;
	if (fits)
		nested.slots[nested.tail++ % RING_SZ] = job;
	pthread_mutex_unlock(&nested.outer);
	return fits;
}

static struct job *nested_pop(void)
{
	struct job *job = NULL;

	pthread_mutex_lock(&nested.outer);
	if (nested.head != nested.tail) {
		job = nested.slots[nested.head++ % RING_SZ];
		pthread_mutex_lock(&nested.inner);
		nested.passed--;
		pthread_mutex_unlock(&nested.inner);
	}
	pthread_mutex_unlock(&nested.outer);
	return job;
}

/* --- a priority queue: both ends move what others put in ---------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	struct job *jobs[RING_SZ];
	unsigned int cnt;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void heap_swap(unsigned int a, unsigned int b)
{
	struct job *job = heap.jobs[a];

	heap.jobs[a] = heap.jobs[b];
	heap.jobs[b] = job;
}

static int heap_push(struct job *job)
{
	int fits;

	pthread_mutex_lock(&heap.lock);
	fits = heap.cnt < RING_SZ;
	if (fits) {
		unsigned int at = heap.cnt++;

		heap.jobs[at] = job;
		while (at && heap.jobs[(at - 1) / 2]->key > heap.jobs[at]->key) {
			heap_swap(at, (at - 1) / 2);
			at = (at - 1) / 2;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return fits;
}

static struct job *heap_pop(void)
{
	struct job *job = NULL;

	pthread_mutex_lock(&heap.lock);
	if (heap.cnt) {
		unsigned int at = 0;

		job = heap.jobs[0];
		heap.jobs[0] = heap.jobs[--heap.cnt];
		for (;;) {
			unsigned int least = at;

			for (unsigned int child = 2 * at + 1; child <= 2 * at + 2 && child < heap.cnt; child++)
				if (heap.jobs[child]->key < heap.jobs[least]->key)
					least = child;
			if (least == at)
				break;
			heap_swap(at, least);
			at = least;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return job;
}

/* --- no queues: a free list, a counter, a table, what one thread announces ---------------------------------------- */

static struct {
	pthread_mutex_t lock;
	STAILQ_HEAD(, job) jobs;
} unused = {.lock = PTHREAD_MUTEX_INITIALIZER, .jobs = STAILQ_HEAD_INITIALIZER(unused.jobs)};

static struct job *unused_take(void)
{
	struct job *job;

	pthread_mutex_lock(&unused.lock);
	job = STAILQ_FIRST(&unused.jobs);
	if (job)
		STAILQ_REMOVE_HEAD(&unused.jobs, single);
	pthread_mutex_unlock(&unused.lock);
	return job ? job : job_new(1);
}

static void unused_give(struct job *job)
{
	pthread_mutex_lock(&unused.lock);
	STAILQ_INSERT_HEAD(&unused.jobs, job, single);
	pthread_mutex_unlock(&unused.lock);
}

static struct {
	pthread_mutex_t lock;
	uint64_t count;
} counter = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t counter_move(uint64_t by)
{
	uint64_t count;

	pthread_mutex_lock(&counter.lock);
	counter.count += by;
	count = counter.count;
	pthread_mutex_unlock(&counter.lock);
	return count;
}

static struct {
	pthread_mutex_t lock;
	struct job *jobs[TABLE_SZ];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct job *table_exchange(unsigned int at, struct job *job)
{
	struct job *before;

	pthread_mutex_lock(&table.lock);
	before = table.jobs[at % TABLE_SZ];
	table.jobs[at % TABLE_SZ] = job;
	pthread_mutex_unlock(&table.lock);
	return before;
}

static struct {
	pthread_mutex_t lock;
	struct job *current;
} announced = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct job *announced_read(void)
{
	struct job *job;

	pthread_mutex_lock(&announced.lock);
	job = announced.current;
	pthread_mutex_unlock(&announced.lock);
	return job;
}

static void announced_set(struct job *job)
{
	pthread_mutex_lock(&announced.lock);
	announced.current = job;
	pthread_mutex_unlock(&announced.lock);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static unsigned int seed_of(const void *at)
{
	return (unsigned int)(uintptr_t)at * 2654435761U;
}

/* Bursts of one to three, so that some wait. */
#define PRODUCER(kind, push)                                              \
	static void *kind##_in(void *arg)                                 \
	{                                                                 \
		unsigned int seed = seed_of(&arg);                        \
                                                                          \
		prctl(PR_SET_NAME, #kind "-in");                          \
		for (;;) {                                                \
			for (int i = rand_r(&seed) % 3; i >= 0; i--) {    \
				struct job *job = job_new(rand_r(&seed)); \
                                                                          \
				if (!(push))                              \
					free(job);                        \
			}                                                 \
			usleep(PAUSE_US);                                 \
		}                                                         \
		return NULL;                                              \
	}

#define CONSUMER(kind, pop)                           \
	static void *kind##_out(void *arg)            \
	{                                             \
		prctl(PR_SET_NAME, #kind "-out");     \
		for (;;) {                            \
			struct job *job = arg;        \
                                                      \
			pop;                          \
			if (!job) {                   \
				usleep(PAUSE_US / 3); \
				continue;             \
			}                             \
			job_do(job);                  \
			free(job);                    \
		}                                     \
		return NULL;                          \
	}

PRODUCER(single, (single_push(job), 1))
CONSUMER(single, job = single_pop())
PRODUCER(twin, (twin_push(job), 1))
CONSUMER(twin, job = twin_pop())
PRODUCER(ring, ring_push(&ring, job))
CONSUMER(ring, if (!ring_pop(&ring, &job)) job = NULL)
PRODUCER(nested, nested_push(job))
CONSUMER(nested, job = nested_pop())
PRODUCER(heap, heap_push(job))
CONSUMER(heap, job = heap_pop())

static void *freelist(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "freelist");
	for (;;) {
		struct job *job = unused_take(), *other = unused_take();

		job->key = 5;
		job_do(job);
		usleep(PAUSE_US);
		unused_give(job);
		unused_give(other);
	}
	return NULL;
}

static void *count(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "counter");
	for (;;) {
		struct job job = {.key = counter_move(1)};

		job_do(&job);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void *exchange(void *arg)
{
	unsigned int seed = seed_of(&arg);
	struct job *job = job_new(7);

	prctl(PR_SET_NAME, "table");
	for (;;) {
		struct job *before = table_exchange(rand_r(&seed), job);

		job = before ? before : job_new(8);
		job_do(job);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void *announce(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "announce");
	for (;;) {
		announced_set(job_new(9));
		usleep(20 * PAUSE_US);
	}
	return NULL;
}

static void *heed(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "heed");
	for (;;) {
		struct job *job = announced_read();

		if (job)
			job_do(job);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void start(void *(*body)(void *), int cnt)
{
	pthread_t thread;

	while (cnt--)
		if (pthread_create(&thread, NULL, body, NULL))
			exit(1);
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : SECONDS_DEFAULT;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(single_in, 1);
	start(single_out, 2);
	start(twin_in, 2);
	start(twin_out, 1);
	start(ring_in, 1);
	start(ring_out, 2);
	start(nested_in, 1);
	start(nested_out, 1);
	start(heap_in, 2);
	start(heap_out, 2);
	start(freelist, BOTH_CNT);
	start(count, BOTH_CNT);
	start(exchange, BOTH_CNT);
	start(announce, 1);
	start(heed, BOTH_CNT);
	printf("ready\n");
	fflush(stdout);
	sleep(seconds);
	printf("%lu\n", (unsigned long)work_done);
	return 0;
}
