// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a context switch costs: two threads of one CPU hand a byte to and fro through pipes, for ever.
 *
 *	bench_switch [CPU]
 *
 * A line every quarter of a second: nanoseconds per switch since the line before.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_NS 250000000ULL
#define LOOK    1000 /* rounds between two looks at the clock */

static int there[2], back[2];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void pass(int from, int to)
{
	char byte = 0;

	if ((from >= 0 && read(from, &byte, 1) != 1) || (to >= 0 && write(to, &byte, 1) != 1))
		exit(1);
}

static void *answer(void *arg)
{
	(void)arg;
	for (;;)
		pass(there[0], back[1]);
	return NULL;
}

int main(int argc, char **argv)
{
	cpu_set_t one;
	pthread_t thread;
	uint64_t since_ts, round_cnt = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&one);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back) ||
	    pthread_create(&thread, NULL, answer, NULL))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (since_ts = now_ns();;) {
		uint64_t ts;

		for (int i = 0; i < LOOK; i++) {
			pass(-1, there[1]);
			pass(back[0], -1);
		}
		round_cnt += LOOK;
		ts = now_ns();
		if (ts - since_ts < LINE_NS)
			continue;
		printf("%.1f\n", (double)(ts - since_ts) / (2.0 * (double)round_cnt));
		since_ts = ts;
		round_cnt = 0;
	}
}
