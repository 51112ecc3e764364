// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/call_rates.h"

#include "base/clock.h"
#include "base/order.h"
#include "base/random.h"
#include "capture/breakpoints.h"

#include <errno.h>
#include <stdlib.h>

#define WATCHED_MAX   4 /* threads at a time */
#define WINDOW_NS_MIN 4000000ULL
#define WINDOW_NS_MAX 25000000ULL
#define LOOK_NS       250000000ULL /* between looks at which threads are at work */
#define FIRST_LOOK_NS 30000000ULL
#define LOOKS_MAX     5   /* for somebody who is at work */
#define AGAIN_MAX     3   /* times for what nobody ran for, while there is time left */
#define MAPPED_MAX    256 /* processes whose mappings are known */
/*
 * What hits take varies, most of all in a virtual machine: it is taken away from the time in which they were met only
 * where at least so much of that is left.
 */
#define OWN_SHARE_MIN 0.5

/* Where the functions lie in one process. */
struct mapped {
	pid_t pid;
	uint64_t *addrs;
};

struct counting {
	const struct call_rates_opts *opts;
	const uint64_t *addrs;
	size_t cnt;
	VEC(struct mapped) mapped;
	target_threads threads;
	VEC(uint64_t) used_ns; /* by threads[i] lately */
	uint64_t used_sum_ns;
	uint64_t looked_ts;
	uint64_t random;
	double hit_ns;
};

/* --- which threads ------------------------------------------------------------------------------------------------ */

ORDER(by_tid, struct target_thread, BY(a->tid, b->tid));

static int look(struct counting *counting)
{
	target_threads before = counting->threads;
	int err;

	counting->threads = (target_threads){0};
	err = target_threads_read(counting->opts->processes, &counting->threads);
	counting->used_ns.cnt = counting->used_sum_ns = 0;
	if (!err)
		err = vec_reserve(&counting->used_ns, counting->threads.cnt);
	if (!err)
		vec_sort(&counting->threads, by_tid);
	for (size_t i = 0, at = 0; !err && i < counting->threads.cnt; i++) {
		const struct target_thread *thread = &counting->threads.items[i];
		uint64_t used_ns = 0;

		while (at < before.cnt && before.items[at].tid < thread->tid)
			at++;
		if (at < before.cnt && before.items[at].tid == thread->tid && before.items[at].cpu_ns < thread->cpu_ns)
			used_ns = thread->cpu_ns - before.items[at].cpu_ns;
		counting->used_ns.items[counting->used_ns.cnt++] = used_ns;
		counting->used_sum_ns += used_ns;
	}
	vec_free(&before);
	counting->looked_ts = monotonic_ns();
	return err;
}

static const struct target_thread *draw(struct counting *counting)
{
	uint64_t at = counting->used_sum_ns ? random_next(&counting->random) % counting->used_sum_ns : 0;

	for (size_t i = 0; counting->used_sum_ns && i < counting->threads.cnt; i++) {
		if (at < counting->used_ns.items[i])
			return &counting->threads.items[i];
		at -= counting->used_ns.items[i];
	}
	return NULL;
}

/* --- where -------------------------------------------------------------------------------------------------------- */

static uint64_t addr_in(const target_mappings *mappings, const struct target_mapping *known, uint64_t addr)
{
	uint64_t file_off = addr - known->start + known->file_off;

	for (size_t i = 0; i < mappings->cnt; i++) {
		const struct target_mapping *mapping = &mappings->items[i];

		if (mapping->exec && mapping->ino == known->ino && mapping->dev == known->dev &&
		    file_off >= mapping->file_off && file_off - mapping->file_off < mapping->end - mapping->start)
			return mapping->start + (file_off - mapping->file_off);
	}
	return 0;
}

static int map_process(struct counting *counting, struct mapped *mapped)
{
	target_mappings mappings = {0};
	int err = target_mappings_read(mapped->pid, &mappings);

	/* It has gone: its threads will have, too. */
	if (err && err != -ENOMEM)
		return 0;
	for (size_t i = 0; !err && i < counting->cnt; i++) {
		const struct target_mapping *known = target_mapping_find(counting->opts->mappings, counting->addrs[i]);

		if (known && known->exec && known->ino)
			mapped->addrs[i] = addr_in(&mappings, known, counting->addrs[i]);
	}
	target_mappings_free(&mappings);
	return err;
}

/* NULL: out of memory, or too many processes. */
static const uint64_t *addrs_of(struct counting *counting, pid_t pid)
{
	struct mapped made = {.pid = pid};

	for (size_t i = 0; i < counting->mapped.cnt; i++)
		if (counting->mapped.items[i].pid == pid)
			return counting->mapped.items[i].addrs;
	if (counting->mapped.cnt >= MAPPED_MAX)
		return NULL;
	made.addrs = calloc(counting->cnt, sizeof(*made.addrs));
	if (made.addrs && !map_process(counting, &made) && !vec_push(&counting->mapped, made))
		return made.addrs;
	free(made.addrs);
	return NULL;
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static size_t choose_threads(struct counting *counting, size_t first, size_t cnt, struct breakpoint_thread *chosen)
{
	size_t chosen_cnt = 0;

	for (int i = 0; i < WATCHED_MAX; i++) {
		const struct target_thread *thread = draw(counting);
		const uint64_t *addrs = thread ? addrs_of(counting, thread->pid) : NULL;
		bool again = false;

		for (size_t j = 0; thread && j < chosen_cnt; j++)
			again |= chosen[j].tid == thread->tid;
		if (!addrs || again)
			continue;
		chosen[chosen_cnt] = (struct breakpoint_thread){.tid = thread->tid};
		for (size_t j = 0; j < cnt; j++)
			chosen[chosen_cnt].addrs[j] = addrs[first + j];
		chosen_cnt++;
	}
	return chosen_cnt;
}

static int count_some(struct counting *counting, size_t first, size_t cnt, uint64_t window_ns, struct call_rate *rates)
{
	struct breakpoint_count counts[BREAKPOINT_CNT] = {0};
	struct breakpoint_thread chosen[WATCHED_MAX] = {0};
	size_t chosen_cnt = choose_threads(counting, first, cnt, chosen);
	int err = chosen_cnt ? breakpoints__watch(chosen, chosen_cnt, window_ns, counts) : 0;

	for (size_t i = 0; i < cnt; i++) {
		double running_ns = (double)counts[i].running_ns,
		       own_ns = running_ns - (double)counts[i].hits * counting->hit_ns;

		bool at_least = own_ns < OWN_SHARE_MIN * running_ns;

		rates[first + i] = (struct call_rate){
			.calls = counts[i].hits,
			.seen_ns = (uint64_t)(at_least ? running_ns : own_ns),
			.at_least = at_least,
		};
	}
	return err == -ESRCH ? 0 : err;
}

/* Who sleeps, or is kept from running, for a moment is not yet idle. */
static int look_until_busy(struct counting *counting)
{
	int err = look(counting);

	for (int i = 0; !err && i < LOOKS_MAX && !counting->used_sum_ns && !counting->opts->is_stopped(); i++) {
		sleep_ns(FIRST_LOOK_NS);
		err = look(counting);
	}
	return err;
}

/* Those of which nothing was seen so far; *left: of how many nothing has been seen now. */
static int count_rest(struct counting *counting, uint64_t window_ns, uint64_t until_ts, struct call_rate *rates,
		      size_t *left)
{
	int err = 0;

	*left = 0;
	for (size_t i = 0; !err && i < counting->cnt && !counting->opts->is_stopped(); i += BREAKPOINT_CNT) {
		size_t cnt = counting->cnt - i < BREAKPOINT_CNT ? counting->cnt - i : BREAKPOINT_CNT;
		bool seen = false;

		for (size_t j = 0; j < cnt; j++)
			seen |= rates[i + j].seen_ns > 0;
		if (seen || monotonic_ns() > until_ts)
			continue;
		if (monotonic_ns() - counting->looked_ts > LOOK_NS)
			err = look(counting);
		if (!err)
			err = count_some(counting, i, cnt, window_ns, rates);
		*left += !rates[i].seen_ns;
	}
	return err;
}

static int count_all(struct counting *counting, struct call_rate *rates)
{
	uint64_t groups = (counting->cnt + BREAKPOINT_CNT - 1) / BREAKPOINT_CNT,
		 whole_ns = counting->opts->seconds_max * 1000000000ULL, window_ns = whole_ns / (groups ? groups : 1),
		 again_until_ts = monotonic_ns() + whole_ns;
	size_t left;
	int err = look_until_busy(counting);

	window_ns = window_ns < WINDOW_NS_MIN ? WINDOW_NS_MIN : window_ns > WINDOW_NS_MAX ? WINDOW_NS_MAX : window_ns;
	/* All of them once, however long that takes. */
	if (!err)
		err = count_rest(counting, window_ns, UINT64_MAX, rates, &left);
	for (int i = 0; !err && left && i < AGAIN_MAX; i++)
		err = count_rest(counting, window_ns, again_until_ts, rates, &left);
	return err;
}

int call_rates__count(const struct call_rates_opts *opts, const uint64_t *addrs, size_t cnt, struct call_rate *rates)
{
	struct counting counting = {.opts = opts, .addrs = addrs, .cnt = cnt, .random = monotonic_ns()};
	uint64_t hits;
	int err = breakpoints__measure(&counting.hit_ns, &hits);

	for (size_t i = 0; i < cnt; i++)
		rates[i] = (struct call_rate){0};
	if (!err)
		err = count_all(&counting, rates);
	for (size_t i = 0; i < counting.mapped.cnt; i++)
		free(counting.mapped.items[i].addrs);
	vec_free(&counting.mapped);
	vec_free(&counting.threads);
	vec_free(&counting.used_ns);
	return err;
}
