/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server that forks: at each SIGUSR1 so many children, one after the other, who call compute() a few times and end at
 * once, and as many calls of its own; then it prints `round`.  With --stranger, a program that calls compute() all the
 * time and forks nobody; with --lonely, a server without a child that stays.
 */
#include "safety.h"

#include <sys/wait.h>

#define CHILDREN 50
#define CALLS    10

static volatile sig_atomic_t is_asked;

static void on_ask(int signal_no)
{
	(void)signal_no;
	is_asked = 1;
}

KEPT static uint64_t compute(uint64_t x)
{
	uint64_t sum = safety_mix(x);

	asm volatile("" : "+r"(sum));
	return sum & 0x7f;
}

static void compute_all(uint64_t x)
{
	for (uint64_t i = 0; i < CALLS; i++)
		safety_check(compute(x + i) == (safety_mix(x + i) & 0x7f), "compute(%llu)",
			     (unsigned long long)(x + i));
}

static void one_child(uint64_t x)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		compute_all(x);
		_exit(safety_wrongs ? 126 : (int)compute(x));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	safety_check(WIFEXITED(status) && WEXITSTATUS(status) == (int)(safety_mix(x) & 0x7f), "status %x of child %d",
		     status, (int)pid);
}

/* A child that stays, as long as its parent does. */
static void keep_one(void)
{
	pid_t parent_pid = getpid();

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent_pid)
		pause();
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_ask;
	sigaction(SIGUSR1, &action, NULL);
	if (!*kind)
		keep_one();
	safety_begin(argc, argv);
	while (safety_goes_on()) {
		if (!strcmp(kind, "--stranger"))
			compute_all(1);
		safety_sleep_us(1000);
		if (!is_asked)
			continue;
		is_asked = 0;
		for (uint64_t i = 0; i < CHILDREN; i++)
			one_child(i);
		compute_all(CHILDREN);
		printf("round\n");
		fflush(stdout);
	}
	return safety_verdict();
}
