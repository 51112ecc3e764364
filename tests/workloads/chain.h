/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Behind another process: every request asks `store` over a connection that the server opened, and there `vacuum` holds
 * a lock for some milliseconds, some four times a second.  Planted: the clock around the question and its answer.
 */
#ifndef WORKLOADS_CHAIN_H
#define WORKLOADS_CHAIN_H

#include "common.h"

#include <errno.h>
#include <unistd.h>

#define CONNECTION_CNT 4

/* How the two processes speak: a listening descriptor in the store, a connected one in the server. */
struct chain_link {
	int (*listens)(struct run *run);
	int (*connects)(struct run *run);
	int (*accepts)(int listen_fd);
};
extern const struct chain_link chain_link;

extern pthread_mutex_t store_lock;
pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

static void *store_thread(void *arg)
{
	struct worker *peer = arg;
	uint64_t question;

	thread_name("store-%d", peer->idx);
	while (!message_recv(peer->fd, &question, sizeof(question))) {
		pthread_mutex_lock(&store_lock);
		spin_work(2 * NS_PER_US);
		pthread_mutex_unlock(&store_lock);
		if (message_send(peer->fd, &question, sizeof(question)))
			break;
	}
	close(peer->fd);
	return NULL;
}

static void *vacuum_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();

	thread_name("vacuum");
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		pthread_mutex_lock(&store_lock);
		sleep_for_ns(random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS));
		pthread_mutex_unlock(&store_lock);
	}
	return NULL;
}

static int store_body(struct run *run)
{
	static struct worker peers[CONNECTION_CNT];
	pthread_t vacuum;
	int listen_fd, err;

	thread_name("store");
	thread_pin(CPU_LOAD);
	thread_urgent(PRIO_HOG);
	spin_calibrate();
	listen_fd = chain_link.listens(run);
	if (listen_fd < 0)
		return listen_fd;
	err = thread_start_named(&vacuum, vacuum_body, run);
	if (err)
		return err;
	atomic_store(&run->board->helper_ready, 1);
	for (int i = 0; i < CONNECTION_CNT; i++) {
		peers[i].idx = i;
		peers[i].fd = chain_link.accepts(listen_fd);
		if (peers[i].fd < 0)
			return -errno;
		err = thread_start_named(&peers[i].thread, store_thread, &peers[i]);
		if (err)
			return err;
	}
	for (int i = 0; i < CONNECTION_CNT; i++)
		pthread_join(peers[i].thread, NULL);
	return 0;
}

static int chain_thread_start(struct worker *worker)
{
	static int fds[CONNECTION_CNT];

	worker->own = &fds[worker->idx];
	fds[worker->idx] = chain_link.connects(worker->run);
	return fds[worker->idx] < 0 ? fds[worker->idx] : 0;
}

static uint64_t chain_handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, question = request->seq;
	int fd = *(int *)worker->own;

	spin_work(100 * NS_PER_US);
	start_ts = clock_now_ns();
	if (message_send(fd, &question, sizeof(question)) || message_recv(fd, &question, sizeof(question)))
		return 0;
	return clock_now_ns() - start_ts;
}

static void chain_report(const struct run *run, FILE *out)
{
	(void)run;
	fprintf(out, ",\"lock\":\"%s:store_lock\"", program_invocation_short_name);
}

#define CHAIN_WORKLOAD(title)                                \
	static const struct workload workload = {            \
		.name = (title),                             \
		.category = "lock",                          \
		.culprit_comm = "vacuum",                    \
		.connection_cnt = CONNECTION_CNT,            \
		.rate_hz = 150,                              \
		.default_duration_s = 6,                     \
		.helper = store_body,                        \
		.thread_start = chain_thread_start,          \
		.handle = chain_handle,                      \
		.report = chain_report,                      \
	};                                                   \
	int main(int argc, char **argv)                      \
	{                                                    \
		return workload_main(argc, argv, &workload); \
	}

#endif
