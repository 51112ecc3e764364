// SPDX-License-Identifier: GPL-2.0-or-later
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_MS 30000
#define PACE_NS           1000000

#ifndef MFD_EXEC /* Linux 6.3 */
#define MFD_EXEC 0x0010U
#endif

struct order {
	uint32_t task; /* enum witness_task */
	uint32_t arg;
};

uint64_t whylate_selftest_quick(uint64_t number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

uint64_t witness_text(void)
{
	uint64_t words[2];

	memcpy(words, (const void *)(uintptr_t)whylate_selftest_quick, sizeof(words));
	return words[0] * 31 + words[1];
}

static bool send_answer(int fd, const struct witness_answer *answer)
{
	return write(fd, answer, sizeof(*answer)) == sizeof(*answer);
}

/* --- the witness's side ------------------------------------------------------------------------------------------- */

static void burst(struct scene *scene, uint32_t cnt, long nap_ns, struct deed_report *report)
{
	struct timespec nap = {.tv_nsec = nap_ns};

	report->tid = scene->main_tid;
	report->before_ts = monotonic_ns();
	for (uint32_t i = 0; i < cnt; i++) {
		report->object = whylate_selftest_quick(report->object);
		if (nap_ns)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	report->after_ts = monotonic_ns();
	report->inner = report->outer = cnt;
}

/* All of them at a time; the calls are the first and the last thing that each does. */
static int brood(struct deed_report *report)
{
	pid_t pids[WITNESS_BROOD_CNT];
	int status, err = 0;
	uint32_t cnt;

	for (cnt = 0; cnt < WITNESS_BROOD_CNT && !err; cnt++) {
		uint64_t number = 0;

		pids[cnt] = fork();
		err = pids[cnt] < 0 ? -errno : 0;
		if (pids[cnt])
			continue;
		for (int i = 0; i < WITNESS_BROOD_CALLS; i++)
			number = whylate_selftest_quick(number);
		_exit(number == WITNESS_BROOD_CALLS ? 0 : 1);
	}
	for (cnt -= err != 0; cnt-- > 0;)
		if (waitpid(pids[cnt], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			err = err ? err : -ECHILD;
	report->inner = report->outer = WITNESS_BROOD_CNT * WITNESS_BROOD_CALLS;
	return err;
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
		burst(scene, order->arg, 0, &answer->report);
		break;
	case WITNESS_PACED:
		burst(scene, order->arg, PACE_NS, &answer->report);
		break;
	case WITNESS_TEXT:
		answer->report.object = witness_text();
		break;
	case WITNESS_BROOD:
		err = brood(&answer->report);
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

static _Noreturn void witness_main(struct scene *scene, int order_fd, int answer_fd)
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

static _Noreturn void witness_body(int order_fd, int answer_fd, struct witness *witness)
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

void witness_run(void)
{
	struct witness witness = {};

	witness_body(STDIN_FILENO, STDOUT_FILENO, &witness);
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

int witness_program(void)
{
	int exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err = 0;
	struct stat file;

	if (exe_fd < 0)
		return -errno;
	fd = memfd_create("whylate-witness", MFD_CLOEXEC | MFD_EXEC);
	/* Before 6.3 they can be run without asking for it. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("whylate-witness", MFD_CLOEXEC);
	if (fd < 0 || fstat(exe_fd, &file))
		err = -errno;
	for (off_t off = 0; !err && off < file.st_size;) {
		ssize_t sent = sendfile(fd, exe_fd, &off, (size_t)(file.st_size - off));

		err = sent < 0 ? -errno : sent ? 0 : -EIO;
	}
	close(exe_fd);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static _Noreturn void become(int program_fd, int order_fd, int answer_fd)
{
	char *argv[] = {"whylate", "doctor", "--witness", NULL};

	/* Out of the way of the places that they are to have. */
	order_fd = fcntl(order_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	answer_fd = fcntl(answer_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (dup2(order_fd, STDIN_FILENO) >= 0 && dup2(answer_fd, STDOUT_FILENO) >= 0)
		fexecve(program_fd, argv, environ);
	_exit(1);
}

int witness_start(struct witness *witness, int program_fd)
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
		if (program_fd >= 0)
			become(program_fd, orders[0], answers[1]);
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
