/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that goes to another thread and back by the kernel's message queues: the server thread asks its `filter` by a
 * POSIX one and hears its answer by a System V one.  For 1.5 % of the requests the filter computes for some
 * milliseconds, on the other CPU.  Planted: the clock around the question and its answer.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <unistd.h>

struct answer {
	long type;
	char done;
};

static struct {
	struct run *run;
	mqd_t questions;
	int answers;
} relay;

static void *filter_body(void *arg)
{
	struct answer answer = {.type = 1};
	uint64_t work_ns;

	(void)arg;
	filter_begin();
	while (mq_receive(relay.questions, (char *)&work_ns, sizeof(work_ns), NULL) == sizeof(work_ns)) {
		filter_work(relay.run, work_ns);
		if (msgsnd(relay.answers, &answer, sizeof(answer.done), 0))
			break;
	}
	return NULL;
}

static int server_start(struct run *run)
{
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = sizeof(uint64_t)};
	pthread_t thread;
	char name[64];

	relay.run = run;
	snprintf(name, sizeof(name), "/wl-message-%d", (int)getpid());
	relay.questions = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (relay.questions < 0)
		return errno == ENOSYS ? run_skip(run, "this kernel has no POSIX message queues") : -errno;
	mq_unlink(name);
	relay.answers = msgget(IPC_PRIVATE, 0600);
	if (relay.answers < 0)
		return -errno;
	atomic_store(&run->board->extra[0], relay.answers + 1);
	return thread_start_named(&thread, filter_body, NULL);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t work_ns, start_ts;
	struct answer answer;

	spin_work(100 * NS_PER_US);
	work_ns = filter_work_ns(worker, request);
	start_ts = clock_now_ns();
	if (mq_send(relay.questions, (char *)&work_ns, sizeof(work_ns), 0) ||
	    msgrcv(relay.answers, &answer, sizeof(answer.done), 0, 0) != sizeof(answer.done))
		return 0;
	return clock_now_ns() - start_ts;
}

/* A System V queue stays until somebody removes it. */
static void cleanup(struct run *run)
{
	unsigned long answers = atomic_load(&run->board->extra[0]);

	if (answers)
		msgctl(answers - 1, IPC_RMID, NULL);
}

static const struct workload workload = {
	.name = "message",
	.category = "io.net",
	.culprit_comm = "filter",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.cleanup = cleanup,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
