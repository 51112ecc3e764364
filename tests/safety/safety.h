/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that do what probes may break, and check themselves all the while.  Each prints `ready` once it is at work,
 * and works until SIGTERM, or --seconds N are over, or its parent has died; then it prints `verdict ok N checks`, or
 * `verdict wrong …` with the first thing that was wrong, and exits with 0 or 1.  The C library is all they need.
 */
#ifndef SAFETY_H
#define SAFETY_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* A function of its own in the machine code, whatever the optimiser would rather do. */
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

static volatile sig_atomic_t safety_is_over;
static uint64_t safety_checks, safety_wrongs;
static char safety_first_wrong[256];

static inline void safety_end_soon(int signal_no)
{
	(void)signal_no;
	safety_is_over = 1;
}

static inline bool safety_goes_on(void)
{
	return !safety_is_over;
}

/* Of any thread. */
__attribute__((format(printf, 2, 3))) static inline bool safety_check(bool held, const char *fmt, ...)
{
	__atomic_fetch_add(&safety_checks, 1, __ATOMIC_RELAXED);
	if (!held && __atomic_fetch_add(&safety_wrongs, 1, __ATOMIC_RELAXED) == 0) {
		va_list args;

		va_start(args, fmt);
		vsnprintf(safety_first_wrong, sizeof(safety_first_wrong), fmt, args);
		va_end(args);
	}
	return held;
}

static inline void safety_sleep_us(unsigned int us)
{
	struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

	while (nanosleep(&left, &left) && errno == EINTR && safety_goes_on())
		;
}

/* A step of a generator: what a chain of calls computes can be computed again without them. */
static inline uint64_t safety_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 29;
	return x;
}

/* At the start of main(). */
static inline void safety_begin(int argc, char **argv)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = safety_end_soon;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(argc > 2 && !strcmp(argv[1], "--seconds") ? (unsigned int)atoi(argv[2]) : 300);
	printf("ready\n");
	fflush(stdout);
}

/* The exit code of main(). */
static inline int safety_verdict(void)
{
	if (safety_wrongs)
		printf("verdict wrong %llu of %llu checks, first: %s\n", (unsigned long long)safety_wrongs,
		       (unsigned long long)safety_checks, safety_first_wrong);
	else if (!safety_checks)
		printf("verdict wrong nothing was checked\n");
	else
		printf("verdict ok %llu checks\n", (unsigned long long)safety_checks);
	fflush(stdout);
	return safety_wrongs || !safety_checks;
}

#endif
