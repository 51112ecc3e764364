// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues without a lock, or with a lock that is the program's own: threads `KIND-in` put jobs in and `KIND-out` take
 * them out; and what looks like one and is none, with threads named after it.
 *
 *   queues-lockless [SECONDS]      prints `ready`
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECONDS_DEFAULT 60
#define PAUSE_US        1500
#define RING_SZ         64
#define BOTH_CNT        3 /* threads of what is no queue */

struct job {
	struct job *next;
	uint64_t key;
};

static volatile uint64_t work_done;

static void job_do(const struct job *job)
{
	uint64_t sum = 0;

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
	return job;
}

/* --- a list under a mutex of a futex word --------------------------------------------------------------------------
 */

static int word;
static struct job *first, **last = &first;

static void futex(int *at, int operation, int value)
{
	syscall(SYS_futex, at, operation, value, NULL, NULL, 0);
}

static void word_lock(void)
{
	int was = 0;

	if (__atomic_compare_exchange_n(&word, &was, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE))
		futex(&word, FUTEX_WAIT_PRIVATE, 2);
}

static void word_unlock(void)
{
	if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
		futex(&word, FUTEX_WAKE_PRIVATE, 1);
}

static void futex_push(struct job *job)
{
	job->next = NULL;
	word_lock();
	*last = job;
	last = &job->next;
	word_unlock();
}

static struct job *futex_pop(void)
{
	struct job *job;

	word_lock();
	job = first;
	if (job) {
		first = job->next;
		if (!first)
			last = &first;
	}
	word_unlock();
	return job;
}

/* --- a ring under a spin lock --------------------------------------------------------------------------------------
 */

static char spinning;
static struct job *ring[RING_SZ];
static unsigned int head, tail;

static void spin_push(struct job *job)
{
	while (__atomic_test_and_set(&spinning, __ATOMIC_ACQUIRE))
		;
	if (tail - head < RING_SZ)
		ring[tail++ % RING_SZ] = job;
	__atomic_clear(&spinning, __ATOMIC_RELEASE);
}

static struct job *spin_pop(void)
{
	struct job *job = NULL;

	while (__atomic_test_and_set(&spinning, __ATOMIC_ACQUIRE))
		;
	if (head != tail)
		job = ring[head++ % RING_SZ];
	__atomic_clear(&spinning, __ATOMIC_RELEASE);
	return job;
}

/* --- a ring of one thread for another, whose semaphore wakes it ----------------------------------------------------
 */

static struct job *slots[RING_SZ];
static unsigned int put_at, take_at;
static sem_t filled;

static void sem_push(struct job *job)
{
	slots[put_at++ % RING_SZ] = job;
	sem_post(&filled);
}

static struct job *sem_pop(void)
{
	while (sem_wait(&filled))
		;
	return slots[take_at++ % RING_SZ];
}

/* --- Michael and Scott's queue; its nodes stay, so that none comes twice -------------------------------------------
 */

struct node {
	struct node *next;
	struct job *job;
};

static struct node *front, *back;

static void michael_push(struct job *job)
{
	struct node *node = calloc(1, sizeof(*node)), *end, *none;

	node->job = job;
	do {
		end = __atomic_load_n(&back, __ATOMIC_ACQUIRE);
		none = NULL;
	} while (!__atomic_compare_exchange_n(&end->next, &none, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	__atomic_compare_exchange_n(&back, &end, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct job *michael_pop(void)
{
	for (;;) {
		struct node *node = __atomic_load_n(&front, __ATOMIC_ACQUIRE);
		struct node *next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE);
		struct job *job;

		if (!next)
			return NULL;
		job = next->job;
		if (__atomic_compare_exchange_n(&front, &node, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return job;
	}
}

/* --- no queues: a pool that all take from, what one thread exchanges and others read -------------------------------
 */

static struct job *pool[BOTH_CNT * 2];

static struct job *pool_exchange(unsigned int at, struct job *job)
{
	return __atomic_exchange_n(&pool[at % (BOTH_CNT * 2)], job, __ATOMIC_ACQ_REL);
}

static struct job *current;

static struct job *current_set(struct job *job)
{
	return __atomic_exchange_n(&current, job, __ATOMIC_ACQ_REL);
}

/* --- threads -------------------------------------------------------------------------------------------------------
 */

#define PRODUCER(kind)                                               \
	static void *kind##_in(void *arg)                            \
	{                                                            \
		unsigned int seed = (unsigned int)(uintptr_t)&arg;   \
                                                                     \
		prctl(PR_SET_NAME, #kind "-in");                     \
		for (;;) {                                           \
			for (int i = rand_r(&seed) % 3; i >= 0; i--) \
				kind##_push(job_new(rand_r(&seed))); \
			usleep(PAUSE_US);                            \
		}                                                    \
		return NULL;                                         \
	}

#define CONSUMER(kind)                                  \
	static void *kind##_out(void *arg)              \
	{                                               \
		(void)arg;                              \
		prctl(PR_SET_NAME, #kind "-out");       \
		for (;;) {                              \
			struct job *job = kind##_pop(); \
                                                        \
			if (!job) {                     \
				usleep(PAUSE_US / 3);   \
				continue;               \
			}                               \
			job_do(job);                    \
			free(job);                      \
		}                                       \
		return NULL;                            \
	}

PRODUCER(futex)
CONSUMER(futex)
PRODUCER(spin)
CONSUMER(spin)
PRODUCER(sem)
CONSUMER(sem)
PRODUCER(michael)
CONSUMER(michael)

static void *take_and_give(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)&arg;
	struct job *job = job_new(1);

	prctl(PR_SET_NAME, "pool");
	for (;;) {
		struct job *other = pool_exchange(rand_r(&seed), job);

		job = other ? other : job_new(2);
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
		(void)current_set(job_new(3));
		usleep(20 * PAUSE_US);
	}
	return NULL;
}

static void *heed(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "heed");
	for (;;) {
		job_do(__atomic_load_n(&current, __ATOMIC_ACQUIRE));
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
	sem_init(&filled, 0, 0);
	front = back = calloc(1, sizeof(*front));
	current = job_new(1);
	start(futex_in, 2);
	start(futex_out, 2);
	start(spin_in, 1);
	start(spin_out, 2);
	start(sem_in, 1);
	start(sem_out, 1);
	start(michael_in, 2);
	start(michael_out, 2);
	start(take_and_give, BOTH_CNT);
	start(announce, 1);
	start(heed, BOTH_CNT);
	printf("ready\n");
	fflush(stdout);
	sleep(seconds);
	return 0;
}
