/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that goes to another thread and back without a write: the server thread moves its question from one pipe into
 * that of its `filter` by splice(), and the filter copies its answer into the server's by tee().  For 1.5 % of the
 * requests the filter computes for some milliseconds, on the other CPU.  Planted: the clock around both.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct {
	struct run *run;
	int drafts[2], questions[2], answers[2], heard[2];
} relay;

static void *filter_body(void *arg)
{
	uint64_t work_ns;
	char done = 0;

	(void)arg;
	filter_begin();
	while (read(relay.questions[0], &work_ns, sizeof(work_ns)) == sizeof(work_ns)) {
		filter_work(relay.run, work_ns);
		/* What was copied stays where it was, to be taken out. */
		if (write(relay.answers[1], &done, 1) != 1 || tee(relay.answers[0], relay.heard[1], 1, 0) != 1 ||
		    read(relay.answers[0], &done, 1) != 1)
			break;
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	relay.run = run;
	if (pipe2(relay.drafts, O_CLOEXEC) || pipe2(relay.questions, O_CLOEXEC) || pipe2(relay.answers, O_CLOEXEC) ||
	    pipe2(relay.heard, O_CLOEXEC))
		return -errno;
	return thread_start_named(&thread, filter_body, NULL);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t work_ns, start_ts;
	char done;

	spin_work(100 * NS_PER_US);
	work_ns = filter_work_ns(worker, request);
	start_ts = clock_now_ns();
	if (write(relay.drafts[1], &work_ns, sizeof(work_ns)) != sizeof(work_ns) ||
	    splice(relay.drafts[0], NULL, relay.questions[1], NULL, sizeof(work_ns), 0) != sizeof(work_ns) ||
	    read(relay.heard[0], &done, 1) != 1)
		return 0;
	return clock_now_ns() - start_ts;
}

static const struct workload workload = {
	.name = "splice",
	.category = "io.net",
	.culprit_comm = "filter",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
