// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that owns the store: whatever came in while it synced makes the next batch, so a sync serves many. */
#include "net/collect/collector_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void collector__queue(struct collector *collector, struct request *request)
{
	bool closed;

	request->next = NULL;
	pthread_mutex_lock(&collector->queue_lock);
	closed = collector->queue_closed;
	if (!closed) {
		*collector->queue_end = request;
		collector->queue_end = &request->next;
		pthread_cond_signal(&collector->queue_cond);
	}
	pthread_mutex_unlock(&collector->queue_lock);
	if (!closed)
		return;
	request->err = -ECANCELED;
	MHD_resume_connection(request->mhd);
}

/* Everything in the queue; waits up to a second for something.  False: there is nothing, and never will be. */
static bool take_queue(struct collector *collector, struct request **batch)
{
	struct timespec until;
	bool closed;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_mutex_lock(&collector->queue_lock);
	while (!collector->queue && !collector->queue_closed)
		if (pthread_cond_timedwait(&collector->queue_cond, &collector->queue_lock, &until))
			break;
	*batch = collector->queue;
	collector->queue = NULL;
	collector->queue_end = &collector->queue;
	closed = collector->queue_closed;
	pthread_mutex_unlock(&collector->queue_lock);
	return *batch || !closed;
}

/* Those from `first` up to and without `end` have their answer. */
static void resume(struct collector *collector, struct request *first, const struct request *end)
{
	for (struct request *next; first != end; first = next) {
		next = first->next;
		if (!first->err)
			metrics__stored(&collector->metrics, first->host, &first->result, &first->times,
					(double)store__wall_ns(collector->store) / 1e9);
		if (!first->err || first->err == -ENOSPC || first->err == -EDQUOT)
			collector->full_err = first->err;
		/* Another thread may free it from here on. */
		MHD_resume_connection(first->mhd);
	}
}

static void commit(struct collector *collector, struct request *first, const struct request *end)
{
	store__commit(collector->store);
	for (struct request *it = first; it != end; it = it->next)
		if (!it->err)
			it->err = store__committed(&it->result);
}

static void store_batch(struct collector *collector, struct request *batch, int store_err)
{
	struct request *first = batch;

	for (struct request *it = batch; it; it = it->next) {
		it->err = store_err;
		if (store_err)
			continue;
		it->err = store__put(collector->store, it->host, it->session_id, it->frames.items, it->frames.cnt,
				     &it->result);
		if (it->err != -EAGAIN || it == first)
			continue;
		commit(collector, first, it);
		resume(collector, first, it);
		first = it;
		it->err = store__put(collector->store, it->host, it->session_id, it->frames.items, it->frames.cnt,
				     &it->result);
	}
	if (!store_err)
		commit(collector, first, NULL);
	resume(collector, first, NULL);
}

static void say_change(const struct collector *collector, int before, int now)
{
	if (now && now != before)
		log_error("the store '%s' cannot be written: %s; agents are told to come again",
			  collector->opts.store.dir, strerror(-now));
	else if (!now && before)
		log_info("the store '%s' is there again", collector->opts.store.dir);
}

static void *committer_run(void *ctx)
{
	struct collector *collector = ctx;
	struct store_stats stats;
	struct request *batch;
	int err = 0, before;

	while (take_queue(collector, &batch)) {
		uint64_t begin_ts = monotonic_ns();
		bool had_batch = batch;

		before = err;
		err = store__check(collector->store);
		say_change(collector, before, err);
		if (batch)
			store_batch(collector, batch, err);
		if (!err)
			store__tick(collector->store);
		store__stats(collector->store, &stats);
		metrics__committed(&collector->metrics, had_batch ? (double)(monotonic_ns() - begin_ts) / 1e9 : 0,
				   err ?: collector->full_err, &stats);
	}
	return NULL;
}

int collector__start_committer(struct collector *collector)
{
	int err;

	collector->queue_closed = false;
	err = pthread_create(&collector->committer, NULL, committer_run, collector);
	collector->committer_runs = !err;
	return -err;
}

void collector__stop_committer(struct collector *collector)
{
	pthread_mutex_lock(&collector->queue_lock);
	collector->queue_closed = true;
	pthread_cond_signal(&collector->queue_cond);
	pthread_mutex_unlock(&collector->queue_lock);
	if (collector->committer_runs)
		pthread_join(collector->committer, NULL);
	collector->committer_runs = false;
}
