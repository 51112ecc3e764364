// SPDX-License-Identifier: GPL-2.0-or-later
/* Treiber's stack as a work list: the newest comes out first.  Jobs are never given back, so that no address comes
 * twice. */
#define JOB_NEW
#include "staged.h"

static struct job *top;

static struct job *job_new(void)
{
	return calloc(1, sizeof(struct job));
}

static void job_free(struct job *job)
{
	(void)job;
}

static void put(struct job *job)
{
	job->next = __atomic_load_n(&top, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&top, &job->next, job, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static struct job *take(void)
{
	struct job *job = __atomic_load_n(&top, __ATOMIC_ACQUIRE);

	while (job && !__atomic_compare_exchange_n(&top, &job, job->next, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		;
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
