// SPDX-License-Identifier: GPL-2.0-or-later
/* APR's queue. */
#include "staged.h"

#include <apr_general.h>
#include <apr_queue.h>

static apr_queue_t *jobs;

static void put(struct job *job)
{
	while (apr_queue_push(jobs, job) != APR_SUCCESS)
		;
}

static struct job *take(void)
{
	void *job = NULL;

	return apr_queue_pop(jobs, &job) == APR_SUCCESS ? job : NULL;
}

int main(int argc, char **argv)
{
	apr_pool_t *pool;

	(void)argc;
	apr_initialize();
	if (apr_pool_create(&pool, NULL) || apr_queue_create(&jobs, 64, pool))
		return 1;
	staged_run(argv);
}
