// SPDX-License-Identifier: GPL-2.0-or-later
/* What is selected, and when: from the start to the stop, all the time or in windows. */
#include "capture/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "bpf/knobs.h"
#include "capture/internal.h"
#include "whylate.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the first ones cost is measured, so that a short recording has a figure, and of the others one of so many. */
#define WINDOWS_MEASURED            4
#define WINDOW_MEASURED_OF          16
#define WINDOW_MEASURED_OF_GOVERNED 4

/* rate and stated, of 2^32, as the programs want them. */
static uint64_t selection(uint64_t rate, uint64_t stated)
{
	if (!rate)
		return SELECTION_NONE;
	return SELECTION(rate - 1, stated >= CAPTURE_RATE_ALL ? 0 : stated);
}

void capture__set_rate(struct capture *capture, uint64_t rate)
{
	capture->rate = rate;
	__atomic_store_n(&capture->controls->selection, selection(rate, rate), __ATOMIC_RELAXED);
}

void capture__retain(struct capture *capture, uint64_t late_ns, uint64_t chance)
{
	__atomic_store_n(&capture->controls->keep_chance, chance, __ATOMIC_RELAXED);
	__atomic_store_n(&capture->controls->late_ns, late_ns, __ATOMIC_RELAXED);
}

uint64_t capture__rate(const struct capture *capture)
{
	return capture->rate;
}

void capture__select(struct capture *capture)
{
	if (!capture->opts.windows)
		capture__set_rate(capture, capture->opts.rate);
}

static void window_begins(struct capture *capture, bool endless)
{
	capture->window_open_ns = monotonic_ns();
	capture->endless = endless;
}

/*
 * While only some hooks are attached, an arrival whose reading nobody saw would pass for the next request's, and make
 * it late.  So what was noted down meanwhile is of a window that is over; nothing is selected before capture__select().
 */
int capture__start(struct capture *capture)
{
	struct controls *controls = capture->controls;
	bool watching = capture->opts.watch_first;
	int err;

	if (capture->opts.windows)
		capture__measure_way(capture);
	err = capture__attach(capture);
	if (!err && watching) {
		window_begins(capture, true);
		capture->started_ns = capture->window_open_ns;
		err = capture__attach_window(capture);
	}
	if (!err)
		err = capture__adopt_threads(capture);
	__atomic_store_n(&controls->rested, capture->opts.windows && !watching, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->watching, !err && watching, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	return !err && watching ? capture__adopt_threads(capture) : err;
}

/* Before the hooks are detached: what is open now never ends. */
static uint64_t censor(struct capture *capture)
{
	struct controls *controls = capture->controls;
	int opens = bpf_map__fd(capture->skel->maps.opens);
	void *value = malloc(bpf_map__value_size(capture->skel->maps.opens));
	uint64_t now = monotonic_ns(), cnt = controls->expected;
	struct open_head *open = value;
	uint32_t place = 0;

	capture->censored.weight += (double)controls->expected_weight / (double)WEIGHT_ONE;
	for (; value && open_table__next(capture->open_table, &place); place++) {
		uint64_t age_ns = 0;

		if (!bpf_map_lookup_elem(opens, &place, value)) {
			age_ns = now > open->begin_ts ? now - open->begin_ts : 0;
			capture->censored.weight += (double)WEIGHT_OF((uint64_t)open->rate) / (double)WEIGHT_ONE;
			cnt++;
		}
		if (age_ns > capture->censored.longest_ns)
			capture->censored.longest_ns = age_ns;
		open_table__drop(capture->open_table, place);
	}
	free(value);
	capture->censored.cnt += cnt;
	return cnt;
}

void capture__censored(const struct capture *capture, struct capture_censored *censored)
{
	*censored = capture->censored;
}

static void end_window(struct capture *capture)
{
	capture__window_drain(capture);
	__atomic_store_n(&capture->controls->rested, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->watching, 0, __ATOMIC_SEQ_CST);
	capture__detach_window(capture);
	capture__cost_window_end(capture);
	capture->windows_ns += monotonic_ns() - capture->window_open_ns;
	capture->window_open_ns = 0;
}

void capture__stop(struct capture *capture)
{
	if (capture->stopped)
		return;
	capture__cost_stop(capture);
	capture__window_drain(capture);
	censor(capture);
	if (capture->window_open_ns)
		end_window(capture);
	capture->stopped = true;
	capture__detach(capture);
}

/* Who waited for whom when the last window closed. */
static void forget_owed(struct capture *capture)
{
	int owed = bpf_map__fd(capture->skel->maps.owed);
	uint32_t tid;

	if (!capture->controls->owed_cnt)
		return;
	while (!bpf_map_get_next_key(owed, NULL, &tid) && !bpf_map_delete_elem(owed, &tid))
		;
	capture->controls->owed_cnt = 0;
}

int capture__window_open(struct capture *capture, bool endless)
{
	uint64_t of = capture->opts.watch_first ? WINDOW_MEASURED_OF_GOVERNED : WINDOW_MEASURED_OF;
	struct controls *controls = capture->controls;
	int err;

	controls->expected = controls->waiting = 0;
	controls->expected_weight = 0;
	forget_owed(capture);
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	capture__cost_window(capture, capture->window_cnt < WINDOWS_MEASURED || capture->window_cnt % of == 0);
	capture->window_cnt++;
	window_begins(capture, endless);
	err = capture__attach_window(capture);
	/* What the first hooks saw while others were missing is of a window that is over. */
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->held_cnt, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->watching, !err, __ATOMIC_SEQ_CST);
	/* A segment needs a beginning, and a thread that waits meets no hook until it is woken. */
	return !err && capture->opts.trace ? capture__adopt_threads(capture) : err;
}

void capture__window_select(struct capture *capture, uint64_t rate, uint64_t stated, uint64_t begin_ts, uint64_t end_ts)
{
	capture->endless = !end_ts;
	__atomic_store_n(&capture->controls->select_begin_ts, begin_ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->select_end_ts, end_ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->selection, selection(rate, stated), __ATOMIC_RELAXED);
}

void capture__window_drain(struct capture *capture)
{
	__atomic_store_n(&capture->controls->selection, SELECTION_NONE, __ATOMIC_RELAXED);
}

/* An acknowledgement is delayed by 200 ms at most, and a client that never goes on has no other end. */
#define HELD_WAIT_NS 250000000ULL

bool capture__window_is_drained(struct capture *capture)
{
	const struct controls *controls = capture->controls;
	uint32_t place = 0;

	if (__atomic_load_n(&controls->expected, __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&controls->held_cnt, __ATOMIC_RELAXED) &&
	    monotonic_ns() < controls->select_end_ts + HELD_WAIT_NS)
		return false;
	return !open_table__next(capture->open_table, &place);
}

void capture__window_close(struct capture *capture)
{
	if (!capture->window_open_ns)
		return;
	capture__window_drain(capture);
	capture->cut_cnt += censor(capture);
	end_window(capture);
}
