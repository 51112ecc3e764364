/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Children by fork, vfork with exec, posix_spawn, and a child that execs itself; each computes a number through
 * functions that the parent has, too, and hands it back as its exit code.
 */
#include "safety.h"

#include <spawn.h>
#include <sys/wait.h>

static char *self = "/proc/self/exe";
extern char **environ;

KEPT static uint64_t inner(uint64_t x)
{
	return safety_mix(x) & 0x7f;
}

KEPT static uint64_t middle(uint64_t x)
{
	uint64_t sum = inner(x);

	return (sum + inner(x + 1)) & 0x7f;
}

KEPT static uint64_t outer(uint64_t x)
{
	return (middle(x) + middle(x + 2)) & 0x7f;
}

static int expected(uint64_t x)
{
	return (int)((safety_mix(x) + safety_mix(x + 1) + safety_mix(x + 2) + safety_mix(x + 3)) & 0x7f);
}

KEPT static pid_t by_vfork(char *const argv[])
{
	pid_t pid = vfork();

	if (!pid) {
		execve(self, argv, environ);
		_exit(126);
	}
	return pid;
}

KEPT static pid_t by_fork(uint64_t x, char *const argv[], bool exec)
{
	pid_t pid = fork();

	if (!pid) {
		if (exec && outer(x) < 128)
			execve(self, argv, environ);
		_exit(exec ? 126 : (int)outer(x));
	}
	return pid;
}

KEPT static pid_t by_spawn(char *const argv[])
{
	pid_t pid;

	return posix_spawn(&pid, self, NULL, NULL, argv, environ) ? -1 : pid;
}

KEPT static void one_round(uint64_t x)
{
	char number[32], *argv[] = {"spawned", "--compute", number, NULL};
	int status = -1;
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)x);
	switch (x % 4) {
	case 0:
		pid = by_vfork(argv);
		break;
	case 1:
		pid = by_fork(x, argv, false);
		break;
	case 2:
		pid = by_fork(x, argv, true);
		break;
	default:
		pid = by_spawn(argv);
	}
	if (!safety_check(pid > 0, "a child"))
		return;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	safety_check(WIFEXITED(status) && WEXITSTATUS(status) == expected(x), "status %x of child %d of kind %d",
		     status, (int)pid, (int)(x % 4));
	safety_check((int)outer(x) == expected(x), "the parent's own");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--compute"))
		return (int)outer(strtoull(argv[2], NULL, 10));
	safety_begin(argc, argv);
	for (uint64_t i = 0; safety_goes_on(); i++) {
		one_round(safety_mix(i) >> 8);
		safety_sleep_us(2000);
	}
	return safety_verdict();
}
