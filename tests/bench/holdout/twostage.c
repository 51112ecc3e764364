// SPDX-License-Identifier: GPL-2.0-or-later
/* Two stages in a row: a list linked one way, a thread that checks, a ring. */
#include "staged.h"

#include <sys/queue.h>

#define RING_SZ 64

struct item {
	STAILQ_ENTRY(item) link;
	struct job *job;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER, ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t list_filled = PTHREAD_COND_INITIALIZER, ring_filled = PTHREAD_COND_INITIALIZER;
static STAILQ_HEAD(, item) list = STAILQ_HEAD_INITIALIZER(list);
static struct job *ring[RING_SZ];
static unsigned int head, tail;

static void put(struct job *job)
{
	struct item *item = calloc(1, sizeof(*item));

	item->job = job;
	pthread_mutex_lock(&list_lock);
	STAILQ_INSERT_TAIL(&list, item, link);
	pthread_cond_signal(&list_filled);
	pthread_mutex_unlock(&list_lock);
}

static void *checker(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "checker");
	for (;;) {
		struct item *item;
		struct job *job;

		pthread_mutex_lock(&list_lock);
		while (STAILQ_EMPTY(&list))
			pthread_cond_wait(&list_filled, &list_lock);
		item = STAILQ_FIRST(&list);
		STAILQ_REMOVE_HEAD(&list, link);
		pthread_mutex_unlock(&list_lock);
		job = item->job;
		free(item);
		work_for(20000);
		pthread_mutex_lock(&ring_lock);
		ring[tail++ % RING_SZ] = job;
		pthread_cond_signal(&ring_filled);
		pthread_mutex_unlock(&ring_lock);
	}
	return NULL;
}

static struct job *take(void)
{
	struct job *job;

	pthread_mutex_lock(&ring_lock);
	while (head == tail)
		pthread_cond_wait(&ring_filled, &ring_lock);
	job = ring[head++ % RING_SZ];
	pthread_mutex_unlock(&ring_lock);
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	thread_start(checker, NULL);
	staged_run(argv);
}
