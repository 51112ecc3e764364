// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds/queues_list.h"

#include "base/log.h"
#include "rounds/queues.h"
#include "target/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A list has each place once. */
static bool is_listed(const struct queue_study *study, size_t pair_cnt, const char *text)
{
	for (size_t i = 0; i < pair_cnt; i++) {
		const struct queue_pair *pair = &study->pairs.items[i];

		if (!strcmp(study->lines.items[pair->in].text, text) ||
		    !strcmp(study->lines.items[pair->out].text, text))
			return true;
	}
	return false;
}

static int write_list(const struct queue_study *study, int fd)
{
	for (size_t i = 0; i < study->pairs.cnt; i++) {
		const uint32_t ends[] = {study->pairs.items[i].in, study->pairs.items[i].out};

		for (size_t end = 0; end < 2; end++) {
			const char *text = study->lines.items[ends[end]].text;

			if (!is_listed(study, i, text) && dprintf(fd, "%s\n", text) < 0)
				return -EIO;
		}
	}
	return 0;
}

/* In the process that searches. */
static int search(pid_t pid, const char *debuginfo_dir, const struct suggest_options *options, int fd)
{
	const struct program_opts opts = {.debuginfo_dir = debuginfo_dir, .want_debuginfod = true};
	struct queue_study study = {0};
	struct program *program;
	int err = program__open(pid, &opts, &program);

	if (err) {
		log_error("cannot read the code of process %d: %s", pid, strerror(-err));
		return err;
	}
	err = queues_find(&study, options, program);
	if (!err)
		err = write_list(&study, fd);
	if (!err)
		log_info("queues: %zu found, by %.1f s of watching %zu places", study.pairs.cnt, study.seconds,
			 study.places);
	queue_study_free(&study);
	program__free(program);
	return err;
}

static int lines_of(int fd)
{
	char bytes[4096];
	off_t at = 0;
	int cnt = 0;

	for (ssize_t len; (len = pread(fd, bytes, sizeof(bytes), at)) > 0; at += len)
		for (ssize_t i = 0; i < len; i++)
			cnt += bytes[i] == '\n';
	return cnt;
}

int queues_find_list(pid_t pid, const char *debuginfo_dir, const struct suggest_options *options, int *list_fd)
{
	int fd = memfd_create("queues", MFD_CLOEXEC), status = 0;
	pid_t child = fd < 0 ? -1 : fork();

	*list_fd = -1;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(search(pid, debuginfo_dir, options, fd) ? 1 : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		log_error("the search for queues cannot begin: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -ECHILD;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		if (WIFSIGNALED(status))
			log_error("the search for queues ended by signal %d", WTERMSIG(status));
		close(fd);
		return -ECHILD;
	}
	*list_fd = fd;
	return lines_of(fd);
}
