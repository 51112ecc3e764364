/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for another process: 4 % of the requests ask `backend`, a process of its own, over a TCP connection that the
 * server opened; the answer takes some milliseconds.  Planted: the clock around the question and its answer.
 */
#include "common.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_CNT 4

static void *backend_thread(void *arg)
{
	struct worker *peer = arg;
	uint64_t wait_ns;

	thread_name("backend");
	while (!message_recv(peer->fd, &wait_ns, sizeof(wait_ns))) {
		sleep_for_ns(wait_ns);
		if (message_send(peer->fd, &wait_ns, sizeof(wait_ns)))
			break;
	}
	close(peer->fd);
	return NULL;
}

static int backend_body(struct run *run)
{
	static struct worker peers[CONNECTION_CNT];
	int port, listen_fd, err;

	thread_name("backend");
	thread_pin(CPU_LOAD);
	thread_urgent(PRIO_HOG);
	listen_fd = tcp_listen(&port);
	if (listen_fd < 0)
		return listen_fd;
	run_set_culprit(run);
	atomic_store(&run->board->helper_port, port);
	atomic_store(&run->board->helper_ready, 1);
	for (int i = 0; i < CONNECTION_CNT; i++) {
		peers[i].fd = accept(listen_fd, NULL, NULL);
		if (peers[i].fd < 0)
			return -errno;
		err = thread_start_named(&peers[i].thread, backend_thread, &peers[i]);
		if (err)
			return err;
	}
	for (int i = 0; i < CONNECTION_CNT; i++)
		pthread_join(peers[i].thread, NULL);
	return 0;
}

static int thread_start(struct worker *worker)
{
	static int fds[CONNECTION_CNT];

	worker->own = &fds[worker->idx];
	fds[worker->idx] = tcp_connect(atomic_load(&worker->run->board->helper_port));
	return fds[worker->idx] < 0 ? fds[worker->idx] : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	int backend_fd = *(int *)worker->own;
	uint64_t start_ts, wait_ns;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	wait_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	start_ts = clock_now_ns();
	if (message_send(backend_fd, &wait_ns, sizeof(wait_ns)) || message_recv(backend_fd, &wait_ns, sizeof(wait_ns)))
		return 0;
	return clock_now_ns() - start_ts;
}

static const struct workload workload = {
	.name = "upstream",
	.category = "io.net",
	.culprit_comm = "backend",
	.connection_cnt = CONNECTION_CNT,
	.rate_hz = 150,
	.default_duration_s = 6,
	.helper = backend_body,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
