// SPDX-License-Identifier: GPL-2.0-or-later
/* GLib's GAsyncQueue. */
#include "staged.h"

#include <glib.h>

static GAsyncQueue *jobs;

static void put(struct job *job)
{
	g_async_queue_push(jobs, job);
}

static struct job *take(void)
{
	return g_async_queue_pop(jobs);
}

int main(int argc, char **argv)
{
	(void)argc;
	jobs = g_async_queue_new();
	staged_run(argv);
}
