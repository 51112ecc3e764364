// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/progress.h"

#include "base/clock.h"
#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define QUIET_NS  2000000000ULL
#define REPAINT_S 0.25

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool runs, ends;
	uint64_t begin_ts;
	_Atomic(const char *) what;
	atomic_uint_fast64_t done, total;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void paint(void)
{
	double seconds = (double)(monotonic_ns() - progress.begin_ts) / 1e9;
	uint64_t done = atomic_load(&progress.done), total = atomic_load(&progress.total);

	/* A message of another thread stays whole. */
	flockfile(stderr);
	if (total)
		log_progress("%s: %.0f %%, %.0f s", atomic_load(&progress.what),
			     done < total ? 100 * (double)done / (double)total : 100., seconds);
	else
		log_progress("%s: %.0f s", atomic_load(&progress.what), seconds);
	funlockfile(stderr);
}

static void *run(void *ctx)
{
	uint64_t wake_ts = progress.begin_ts + QUIET_NS;

	pthread_mutex_lock(&progress.lock);
	while (!progress.ends) {
		const struct timespec until = {.tv_sec = (time_t)(wake_ts / 1000000000),
					       .tv_nsec = (long)(wake_ts % 1000000000)};

		pthread_cond_timedwait(&progress.ended, &progress.lock, &until);
		if (progress.ends || monotonic_ns() < wake_ts)
			continue;
		paint();
		wake_ts = monotonic_ns() + (uint64_t)(REPAINT_S * 1e9);
	}
	pthread_mutex_unlock(&progress.lock);
	return ctx;
}

void progress_begin(const char *what)
{
	pthread_condattr_t attr;
	sigset_t all, before;

	if (progress.runs || !isatty(STDERR_FILENO))
		return;
	progress.begin_ts = monotonic_ns();
	progress.ends = false;
	progress_at(what);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&progress.ended, &attr);
	pthread_condattr_destroy(&attr);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	progress.runs = !pthread_create(&progress.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!progress.runs)
		pthread_cond_destroy(&progress.ended);
}

void progress_at(const char *what)
{
	atomic_store(&progress.total, 0);
	atomic_store(&progress.what, what);
}

void progress_done(uint64_t done, uint64_t total)
{
	atomic_store(&progress.done, done);
	atomic_store(&progress.total, total);
}

void progress_end(void)
{
	if (!progress.runs)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.ends = true;
	pthread_cond_signal(&progress.ended);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.thread, NULL);
	pthread_cond_destroy(&progress.ended);
	progress.runs = false;
	log_progress_end();
}
