/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program for each of 5 % of the requests, over after 16 ms: /proc/PID/maps is gone before the agent reads it.  It is
 * a copy of this one, a file that the server itself has not mapped.  Planted: by the clock around it.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONVERSION_NS (16 * NS_PER_MS)

extern char **environ;
static char converter_path[] = "/var/tmp/whylate-converter-XXXXXX";

KEPT static void convert_image(uint64_t step_cnt)
{
	burn_steps(step_cnt);
}

static int prepare(struct run *run)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(converter_path), err = 0;
	struct stat from_stat;

	(void)run;
	if (from < 0 || to < 0 || fstat(from, &from_stat) || fchmod(to, 0755) ||
	    sendfile(to, from, NULL, (size_t)from_stat.st_size) != from_stat.st_size)
		err = -errno;
	close(from);
	/* A file that is open for writing cannot be run. */
	close(to);
	return err;
}

static void cleanup(struct run *run)
{
	(void)run;
	unlink(converter_path);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	char step_cnt[32], *args[] = {"converter", "convert", step_cnt, NULL};
	uint64_t start_ts;
	pid_t pid;

	(void)worker;
	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 50))
		return 0;
	start_ts = clock_now_ns();
	snprintf(step_cnt, sizeof(step_cnt), "%.0f", (double)CONVERSION_NS * spin_steps_per_ns);
	if (!posix_spawn(&pid, converter_path, NULL, NULL, args, environ))
		waitpid(pid, NULL, 0);
	return clock_now_ns() - start_ts;
}

static const struct workload shortlived = {
	.name = "shortlived",
	.category = "other",
	.culprit_comm = "converter",
	.planted = "convert_image",
	.connection_cnt = 2,
	.rate_hz = 100,
	.default_duration_s = 6,
	.spread = 1,
	.prepare = prepare,
	.cleanup = cleanup,
	.handle = handle,
};

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "convert")) {
		/* The server waits for it, not for its CPU. */
		thread_ordinary(-10);
		convert_image(strtoull(argv[2], NULL, 10));
		return 0;
	}
	return workload_main(argc, argv, &shortlived);
}
