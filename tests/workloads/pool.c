/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of the program: `listener` reads all requests and puts them into a queue, `pool-0` takes them out, answers
 * them, and needs 20 ms for one in a thousand.  Planted: from the end of the listener's work to the moment that the
 * request is taken out of the queue, where the pool was busy then.
 */
#include "common.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_CNT 24

struct job {
	struct worker *worker;
	struct request request;
	uint64_t queued_ts;
	int was_busy;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct job jobs[CONNECTION_CNT]; /* a connection has one request at a time */
	unsigned int head, tail;
	int busy;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static struct job take_job(void)
{
	struct job job;

	pthread_mutex_lock(&queue.lock);
	queue.busy = 0;
	while (queue.head == queue.tail)
		pthread_cond_wait(&queue.filled, &queue.lock);
	job = queue.jobs[queue.head++ % CONNECTION_CNT];
	queue.busy = 1;
	pthread_mutex_unlock(&queue.lock);
	return job;
}

static void *pool_body(void *arg)
{
	struct run *run = arg;

	thread_name("pool-0");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		struct job job = take_job();
		struct reply reply = {.sent_ts = job.request.sent_ts};
		uint64_t taken_ts = clock_now_ns();

		spin_work(request_chosen(&job.request, 1) ? 20 * NS_PER_MS : 20 * NS_PER_US);
		if (!message_send(job.worker->fd, &reply, sizeof(reply)))
			run_sample(run, job.request.sent_ts, clock_now_ns(),
				   job.was_busy ? taken_ts - job.queued_ts : 0);
	}
	return NULL;
}

static int read_job(struct worker *worker)
{
	struct job job = {.worker = worker};
	int err = message_recv(worker->fd, &job.request, sizeof(job.request));

	if (err)
		return err;
	pthread_mutex_lock(&queue.lock);
	job.queued_ts = clock_now_ns();
	job.was_busy = queue.busy;
	queue.jobs[queue.tail++ % CONNECTION_CNT] = job;
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	return 0;
}

static int serve(struct run *run)
{
	static struct worker workers[CONNECTION_CNT];
	struct epoll_event events[CONNECTION_CNT];
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), open_cnt = CONNECTION_CNT;

	thread_name("listener");
	thread_pin(CPU_LOAD);
	for (int i = 0; i < CONNECTION_CNT; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &workers[i]};

		workers[i].run = run;
		workers[i].fd = accept4(run->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (workers[i].fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, workers[i].fd, &event))
			return -errno;
	}
	while (open_cnt) {
		int event_cnt = epoll_wait(epoll_fd, events, CONNECTION_CNT, -1);

		for (int i = 0; i < event_cnt; i++) {
			struct worker *worker = events[i].data.ptr;

			if (!read_job(worker))
				continue;
			close(worker->fd);
			open_cnt--;
		}
	}
	return 0;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, pool_body, run);
}

static const struct workload workload = {
	.name = "pool",
	.category = "queue",
	.culprit_comm = "pool-0",
	.connection_cnt = CONNECTION_CNT,
	.rate_hz = 60,
	.default_duration_s = 8,
	.cpu_cnt_needed = 2,
	.server_start = server_start,
	.serve = serve,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
