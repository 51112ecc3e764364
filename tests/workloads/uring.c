/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that goes to another thread and back through io_uring: the server thread writes its question to an eventfd and
 * reads the answer from a pipe, both submitted to a ring, and waits in io_uring_enter() only.  For 1.5 % of the
 * requests the `filter` computes for some milliseconds, on the other CPU.  Planted: the clock around the wait.
 */
#include "filter.h"
#include "ring.h"

#include <fcntl.h>
#include <sys/eventfd.h>

static struct {
	struct run *run;
	int event_fd, pipe_fds[2];
	struct ring ring;
	atomic_ulong work_ns;
} relay;

static void *filter_body(void *arg)
{
	uint64_t rings;
	char done = 0;

	(void)arg;
	filter_begin();
	while (read(relay.event_fd, &rings, sizeof(rings)) == sizeof(rings)) {
		uint64_t work_ns = atomic_load(&relay.work_ns);

		filter_work(relay.run, work_ns);
		if (write(relay.pipe_fds[1], &done, 1) != 1)
			break;
	}
	return NULL;
}

/* The thread that makes the ring is the one that uses it. */
static int thread_start(struct worker *worker)
{
	pthread_t thread;
	int err = ring_open(&relay.ring);

	if (err)
		return err;
	relay.run = worker->run;
	relay.event_fd = eventfd(0, EFD_CLOEXEC);
	if (relay.event_fd < 0 || pipe2(relay.pipe_fds, O_CLOEXEC))
		return -errno;
	return thread_start_named(&thread, filter_body, NULL);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, ring = 1;
	char done;

	spin_work(100 * NS_PER_US);
	atomic_store(&relay.work_ns, filter_work_ns(worker, request));
	start_ts = clock_now_ns();
	ring_add(&relay.ring, IORING_OP_WRITE, relay.event_fd, &ring, sizeof(ring), UINT64_MAX);
	ring_add(&relay.ring, IORING_OP_READ, relay.pipe_fds[0], &done, 1, UINT64_MAX);
	return ring_wait(&relay.ring, 2, 2) ? clock_now_ns() - start_ts : 0;
}

static const struct workload workload = {
	.name = "uring",
	.category = "io.net",
	.culprit_comm = "filter",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.prepare = ring_prepare,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
