/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slowness in episodes: the server stalls all of its connections for half a second about every four.  Planted: what a
 * request waits for the end of the stall.
 *
 * Clients think between two requests, so all of them wait soon after a stall has begun: what is slow arrives in a few
 * per cent of the time.  $EPISODES_LOG: a file for `begin_ns end_ns` of each request, from the client's send to the
 * server's reply, CLOCK_MONOTONIC.  $EPISODES_EVERY_MS, $EPISODES_STALL_MS: other lengths.
 */
#include "common.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LOG_ROOM (1UL << 20)

struct request_times {
	uint64_t begin_ts, end_ts;
};

/* Shared by the server, which fills it, and the driver, which writes it. */
struct request_log {
	atomic_ulong cnt;
	struct request_times items[LOG_ROOM];
};

static struct request_log *request_log;
static uint64_t every_ns = 4000 * NS_PER_MS, stall_ns = 500 * NS_PER_MS;
static pthread_mutex_t stall_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stall_over = PTHREAD_COND_INITIALIZER;
static int stalled;
static __thread uint64_t sent_ts;

static void set_stalled(int now)
{
	pthread_mutex_lock(&stall_lock);
	stalled = now;
	if (!now)
		pthread_cond_broadcast(&stall_over);
	pthread_mutex_unlock(&stall_lock);
}

static void *stall_body(void *arg)
{
	uint64_t random_state = clock_now_ns();

	run_set_culprit(arg);
	thread_name("staller");
	for (;;) {
		uint64_t quiet_ns = every_ns - stall_ns;

		sleep_for_ns(random_between(&random_state, quiet_ns / 2, quiet_ns * 3 / 2));
		set_stalled(1);
		sleep_for_ns(stall_ns);
		set_stalled(0);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, stall_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts = clock_now_ns();

	(void)worker;
	sent_ts = request->sent_ts;
	pthread_mutex_lock(&stall_lock);
	while (stalled)
		pthread_cond_wait(&stall_over, &stall_lock);
	pthread_mutex_unlock(&stall_lock);
	spin_work(50 * NS_PER_US);
	return clock_now_ns() - start_ts - 50 * NS_PER_US;
}

static void after_reply(struct worker *worker)
{
	uint64_t at = atomic_fetch_add(&request_log->cnt, 1);

	(void)worker;
	if (at < LOG_ROOM)
		request_log->items[at] = (struct request_times){sent_ts, clock_now_ns()};
}

static uint64_t environment_ns(const char *name, uint64_t otherwise_ns)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) * NS_PER_MS : otherwise_ns;
}

static int prepare(struct run *run)
{
	(void)run;
	every_ns = environment_ns("EPISODES_EVERY_MS", every_ns);
	stall_ns = environment_ns("EPISODES_STALL_MS", stall_ns);
	request_log = mmap(NULL, sizeof(*request_log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return request_log == MAP_FAILED ? -errno : 0;
}

static void cleanup(struct run *run)
{
	const char *path = getenv("EPISODES_LOG");
	FILE *out = path ? fopen(path, "w") : NULL;

	(void)run;
	for (uint64_t i = 0; out && i < request_log->cnt && i < LOG_ROOM; i++)
		fprintf(out, "%lu %lu\n", request_log->items[i].begin_ts, request_log->items[i].end_ts);
	if (out)
		fclose(out);
}

static const struct workload workload = {
	.name = "episodes",
	.category = "lock",
	.culprit_comm = "staller",
	.connection_cnt = 120,
	.rate_hz = 6,
	.default_duration_s = 20,
	.prepare = prepare,
	.cleanup = cleanup,
	.server_start = server_start,
	.handle = handle,
	.after_reply = after_reply,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
