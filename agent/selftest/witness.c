// SPDX-License-Identifier: GPL-2.0-only
/* Both ends of the witness process: fork and orders here, the loop that follows them there. */
#include "selftest/witness.h"

#include "base/clock.h"
#include "selftest/probed.h"
#include "selftest/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_MS 30000

struct order {
	uint32_t task; /* enum witness_task */
	uint32_t arg;
};

uint64_t whylate_selftest_quick(uint64_t number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

static bool send_answer(int fd, const struct witness_answer *answer)
{
	return write(fd, answer, sizeof(*answer)) == sizeof(*answer);
}

/* --- the witness's side ------------------------------------------------------------------------------------------- */

static void burst(struct scene *scene, uint32_t cnt, struct deed_report *report)
{
	report->tid = scene->main_tid;
	report->before_ts = monotonic_ns();
	for (uint32_t i = 0; i < cnt; i++)
		report->object = whylate_selftest_quick(report->object);
	report->after_ts = monotonic_ns();
	report->inner = report->outer = cnt;
}

/* Sleeps in one interval, then becomes another program. */
static void child_body(struct scene *scene, int go_fd, int answer_fd)
{
	struct witness_answer answer = {};
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go_fd, &c, 1) != 1)
		_exit(1);
	scene->main_tid = gettid();
	scene_do(scene, DEED_SLEEP, &answer.report);
	send_answer(answer_fd, &answer);
	if (null_fd >= 0)
		dup2(null_fd, STDOUT_FILENO);
	else
		close(STDOUT_FILENO);
	execl("/proc/self/exe", "whylate", "--version", NULL);
	_exit(1);
}

static int fork_child(struct scene *scene, int answer_fd, struct deed_report *report)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	report->before_ts = monotonic_ns();
	scene->child_pid = fork();
	report->after_ts = monotonic_ns();
	if (!scene->child_pid) {
		close(fds[1]);
		child_body(scene, fds[0], answer_fd);
	}
	close(fds[0]);
	scene->child_go_fd = fds[1];
	report->other_tid = scene->child_pid;
	return scene->child_pid < 0 ? -errno : 0;
}

static int child_go(struct scene *scene, struct deed_report *report)
{
	int status;

	report->before_ts = monotonic_ns();
	report->other_tid = scene->child_pid;
	if (write(scene->child_go_fd, "g", 1) != 1)
		return -errno;
	close(scene->child_go_fd);
	if (waitpid(scene->child_pid, &status, 0) < 0)
		return -errno;
	report->after_ts = monotonic_ns();
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static int serve_in_child(struct scene *scene, enum witness_socket which, struct witness_answer *answer, int answer_fd)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		int err;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		err = serve(scene, which, false, answer);
		answer->report.tid = getpid();
		if (err)
			snprintf(answer->report.why, sizeof(answer->report.why), "%s", strerror(-err));
		_exit(send_answer(answer_fd, answer) ? 0 : 1);
	}
	return waitpid(pid, &status, 0) < 0 ? -errno : WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static int follow_order(struct scene *scene, const struct order *order, struct witness_answer *answer, int answer_fd)
{
	uint16_t port = 0;
	int err = 0;

	switch ((enum witness_task)order->task) {
	case WITNESS_DO:
		if (order->arg < DEED_CNT)
			scene_do(scene, order->arg, &answer->report);
		break;
	case WITNESS_BURST:
		burst(scene, order->arg, &answer->report);
		break;
	case WITNESS_FORK:
		err = fork_child(scene, answer_fd, &answer->report);
		break;
	case WITNESS_CHILD_GO:
		err = child_go(scene, &answer->report);
		break;
	case WITNESS_LISTEN:
		err = serve_listen_late(scene, &port);
		answer->report.object = port;
		break;
	case WITNESS_SERVE:
	case WITNESS_SERVE_FILE:
		answer->report.tid = scene->main_tid;
		err = order->arg >= WITNESS_SOCKET_CNT
			      ? -EINVAL
			      : serve(scene, order->arg, order->task == WITNESS_SERVE_FILE, answer);
		break;
	case WITNESS_SERVE_IN_CHILD:
		err = serve_in_child(scene, order->arg, answer, answer_fd);
		break;
	case WITNESS_DESERT:
		err = serve_desert(scene);
		break;
	}
	return err;
}

static void witness_main(struct scene *scene, int order_fd, int answer_fd)
{
	struct order order;

	while (read(order_fd, &order, sizeof(order)) == sizeof(order)) {
		struct witness_answer answer = {};
		int err = follow_order(scene, &order, &answer, answer_fd);

		/* The child has answered by itself. */
		if (order.task == WITNESS_SERVE_IN_CHILD && !err)
			continue;
		if (err)
			snprintf(answer.report.why, sizeof(answer.report.why), "the witness failed: %s",
				 strerror(-err));
		if (!send_answer(answer_fd, &answer))
			break;
	}
	_exit(0);
}

static void witness_body(int order_fd, int answer_fd, struct witness *witness)
{
	static struct scene scene;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "wl-witness");
	signal(SIGPIPE, SIG_IGN);
	err = scene_open(&scene);
	if (!err)
		err = serve_open(&scene, witness);
	if (err || write(answer_fd, witness, sizeof(*witness)) != sizeof(*witness))
		_exit(1);
	witness_main(&scene, order_fd, answer_fd);
}

/* --- the caller's side -------------------------------------------------------------------------------------------- */

/* Messages are smaller than PIPE_BUF: they arrive whole. */
static int receive(struct witness *witness, void *message, size_t sz)
{
	struct pollfd pollfd = {.fd = witness->answer_fd, .events = POLLIN};
	int ready;

	while ((ready = poll(&pollfd, 1, ANSWER_TIMEOUT_MS)) < 0)
		if (errno != EINTR)
			return -errno;
	if (!ready)
		return -ETIMEDOUT;
	return read(witness->answer_fd, message, sz) == (ssize_t)sz ? 0 : -EPIPE;
}

int witness_start(struct witness *witness)
{
	int orders[2], answers[2], err;
	struct witness heard = {};

	memset(witness, 0, sizeof(*witness));
	if (pipe2(orders, O_CLOEXEC))
		return -errno;
	if (pipe2(answers, O_CLOEXEC)) {
		err = -errno;
		close(orders[0]);
		close(orders[1]);
		return err;
	}
	witness->pid = fork();
	if (!witness->pid) {
		close(orders[1]);
		close(answers[0]);
		witness_body(orders[0], answers[1], witness);
	}
	err = witness->pid < 0 ? -errno : 0;
	close(orders[0]);
	close(answers[1]);
	witness->order_fd = orders[1];
	witness->answer_fd = answers[0];
	if (!err)
		err = receive(witness, &heard, sizeof(heard));
	if (err) {
		witness_stop(witness);
		return err;
	}
	heard.pid = witness->pid;
	heard.order_fd = witness->order_fd;
	heard.answer_fd = witness->answer_fd;
	*witness = heard;
	return 0;
}

int witness_order(struct witness *witness, enum witness_task task, uint32_t arg)
{
	struct order order = {task, arg};

	return write(witness->order_fd, &order, sizeof(order)) == sizeof(order) ? 0 : -EPIPE;
}

int witness_answer(struct witness *witness, struct witness_answer *answer)
{
	return receive(witness, answer, sizeof(*answer));
}

void witness_stop(struct witness *witness)
{
	if (witness->pid > 0) {
		kill(witness->pid, SIGKILL);
		waitpid(witness->pid, NULL, 0);
		close(witness->order_fd);
		close(witness->answer_fd);
	}
	witness->pid = 0;
}
