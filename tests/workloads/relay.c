/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that goes to another thread and back: each server thread rings its `filter` by an eventfd and reads the answer
 * from a pipe.  For 1.5 % of the requests the filter computes for some milliseconds, on the other CPU.  Planted: the
 * clock around the question and its answer.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECTION_CNT 1

struct relay {
	struct run *run;
	int event_fd, pipe_fds[2];
	atomic_ulong work_ns;
};

static void *filter_body(void *arg)
{
	struct relay *relay = arg;
	uint64_t rings;
	char done = 0;

	filter_begin();
	while (read(relay->event_fd, &rings, sizeof(rings)) == sizeof(rings)) {
		uint64_t work_ns = atomic_load(&relay->work_ns);

		filter_work(relay->run, work_ns);
		if (write(relay->pipe_fds[1], &done, 1) != 1)
			break;
	}
	return NULL;
}

static int thread_start(struct worker *worker)
{
	static struct relay relays[CONNECTION_CNT];
	struct relay *relay = &relays[worker->idx];
	pthread_t thread;

	worker->own = relay;
	relay->run = worker->run;
	relay->event_fd = eventfd(0, EFD_CLOEXEC);
	if (relay->event_fd < 0 || pipe2(relay->pipe_fds, O_CLOEXEC))
		return -errno;
	return thread_start_named(&thread, filter_body, relay);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct relay *relay = worker->own;
	uint64_t start_ts, ring = 1;
	char done;

	spin_work(100 * NS_PER_US);
	atomic_store(&relay->work_ns, filter_work_ns(worker, request));
	start_ts = clock_now_ns();
	if (write(relay->event_fd, &ring, sizeof(ring)) != sizeof(ring) || read(relay->pipe_fds[0], &done, 1) != 1)
		return 0;
	return clock_now_ns() - start_ts;
}

static const struct workload workload = {
	.name = "relay",
	.category = "io.net",
	.culprit_comm = "filter",
	.connection_cnt = CONNECTION_CNT,
	.rate_hz = 300,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
