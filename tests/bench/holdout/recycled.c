// SPDX-License-Identifier: GPL-2.0-or-later
/* A queue whose jobs come back to the reader by a free list, which has threads of its own at both ends, too. */
#define JOB_NEW
#include "staged.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, spare_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first, *spare;

static struct job *job_new(void)
{
	struct job *job;

	pthread_mutex_lock(&spare_lock);
	job = spare;
	if (job)
		spare = job->next;
	pthread_mutex_unlock(&spare_lock);
	if (!job)
		job = calloc(1, sizeof(*job));
	return job;
}

static void job_free(struct job *job)
{
	pthread_mutex_lock(&spare_lock);
	job->next = spare;
	spare = job;
	pthread_mutex_unlock(&spare_lock);
}

static void put(struct job *job)
{
	pthread_mutex_lock(&lock);
	job->next = NULL;
	*last = job;
	last = &job->next;
	pthread_mutex_unlock(&lock);
	pthread_cond_signal(&filled);
}

static struct job *take(void)
{
	struct job *job;

	pthread_mutex_lock(&lock);
	while (!first)
		pthread_cond_wait(&filled, &lock);
	job = first;
	first = job->next;
	if (!first)
		last = &first;
	pthread_mutex_unlock(&lock);
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
