/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Head-of-line blocking: one thread serves all connections with epoll, and about one request in a thousand computes for
 * 20 ms while the others queue behind it.  Planted: from the arrival (or, where the loop was idle then, from its
 * wake-up, which is the scheduler's part) to the read.
 */
#include "common.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONNECTION_CNT 24

struct loop {
	uint64_t idle_ts; /* when it last began to wait for events */
	uint64_t wake_ts; /* when that wait ended */
};

static uint64_t handle(struct worker *worker, const struct request *request)
{
	const struct loop *loop = worker->own;
	uint64_t read_ts = clock_now_ns();
	uint64_t from_ts = request->sent_ts > loop->idle_ts ? loop->wake_ts : request->sent_ts;

	if (request_chosen(request, 1))
		spin_work(20 * NS_PER_MS);
	else
		spin_work(20 * NS_PER_US);
	return read_ts > from_ts ? read_ts - from_ts : 0;
}

static int connections_accept(struct run *run, struct worker *workers, struct loop *loop, int epoll_fd)
{
	for (int i = 0; i < CONNECTION_CNT; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &workers[i]};
		int on = 1;

		workers[i].run = run;
		workers[i].own = loop;
		workers[i].fd = accept4(run->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (workers[i].fd < 0)
			return -errno;
		setsockopt(workers[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, workers[i].fd, &event))
			return -errno;
	}
	return 0;
}

static int serve(struct run *run)
{
	static struct worker workers[CONNECTION_CNT];
	struct epoll_event events[CONNECTION_CNT];
	struct loop loop = {0};
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), open_cnt = CONNECTION_CNT, err;

	if (epoll_fd < 0)
		return -errno;
	thread_pin(CPU_SERVER);
	err = connections_accept(run, workers, &loop, epoll_fd);
	while (!err && open_cnt) {
		int event_cnt;

		loop.idle_ts = clock_now_ns();
		event_cnt = epoll_wait(epoll_fd, events, CONNECTION_CNT, -1);
		loop.wake_ts = clock_now_ns();
		if (event_cnt < 0 && errno != EINTR)
			err = -errno;
		for (int i = 0; i < event_cnt; i++) {
			struct worker *worker = events[i].data.ptr;

			if (!worker_serve_one(worker))
				continue;
			close(worker->fd);
			open_cnt--;
		}
	}
	return err;
}

static int server_start(struct run *run)
{
	run_set_culprit(run);
	return 0;
}

static const struct workload workload = {
	.name = "eventloop",
	.category = "queue",
	.culprit_comm = "wl-eventloop",
	.connection_cnt = CONNECTION_CNT,
	.rate_hz = 66,
	.default_duration_s = 10,
	.server_start = server_start,
	.serve = serve,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
