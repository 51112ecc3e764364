// SPDX-License-Identifier: GPL-2.0-or-later
/* What comes out of the rings, and what is counted. */
#include "capture/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "bpf/knobs.h"
#include "capture/internal.h"
#include "whylate.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often to look who has joined the target's cgroup, where the kernel does not tell. */
#define MOVES_NS 1000000000ULL

/* Does room for the first bytes follow?  Their number, which the record says, fits into it. */
static bool has_first(const struct wl_record_header *header, size_t sz, size_t want)
{
	return want && (header->kind == WL_RECORD_INTERVAL || header->kind == WL_RECORD_BRIEF) &&
	       sz >= want + WL_FIRST_MAX && header->sz == want + WL_FIRST_MAX &&
	       ((const struct wl_brief_record *)header)->first_len <= WL_FIRST_MAX;
}

static int on_record(void *owner, const void *record, size_t sz)
{
	struct capture *capture = owner;
	const struct wl_record_header *header = record;
	static const size_t sizes[WL_RECORD_KIND_CNT] = {
		[WL_RECORD_INTERVAL] = sizeof(struct wl_interval_record),
		[WL_RECORD_TASK] = sizeof(struct wl_task_record),
		[WL_RECORD_SEGMENT] = sizeof(struct wl_segment_record),
		[WL_RECORD_WAKEUP] = sizeof(struct wl_wakeup_record),
		[WL_RECORD_SOCKET] = sizeof(struct wl_socket_record),
		[WL_RECORD_BLOCK] = sizeof(struct wl_block_record),
		[WL_RECORD_TIMER] = sizeof(struct wl_timer_record),
		[WL_RECORD_INVOCATION] = sizeof(struct wl_invocation_record),
		[WL_RECORD_QUEUE] = sizeof(struct wl_queue_record),
		[WL_RECORD_BRIEF] = sizeof(struct wl_brief_record),
		[WL_RECORD_STACK] = sizeof(struct wl_stack_record),
		[WL_RECORD_STACK_WAIT] = sizeof(struct wl_stack_wait_record),
		[WL_RECORD_PROGRAM] = sizeof(struct wl_program_record),
		[WL_RECORD_PYTHON] = sizeof(struct wl_python_record),
		[WL_RECORD_VALUES] =
			sizeof(struct wl_values_record) - WL_VALUE_WORDS_MAX * sizeof(struct wl_value_word),
	};
	size_t want = sz >= sizeof(*header) && header->kind < WL_RECORD_KIND_CNT ? sizes[header->kind] : 0;

	if (want && header->kind == WL_RECORD_STACK && sz >= want)
		want += ((const struct wl_stack_record *)header)->stack_sz;
	if (want && header->kind == WL_RECORD_VALUES && sz >= want)
		want += ((const struct wl_values_record *)header)->cnt * sizeof(struct wl_value_word);
	if (has_first(header, sz, want))
		want += WL_FIRST_MAX;

	capture->handled++;
	if (!want || sz < want || header->sz != want)
		return -EBADMSG;
	return capture->handle(capture->owner, header);
}

int capture__follow_moved(struct capture *capture)
{
	bool is_told = capture->survey.tier[HOOK_FEATURE_CGROUP];
	uint32_t moves = __atomic_load_n(&capture->controls->cgroup_moves, __ATOMIC_RELAXED);
	uint64_t now = monotonic_ns();
	int err;

	if (!capture->opts.cgroup || (is_told ? moves == capture->moves_seen : now < capture->moves_ts))
		return 0;
	capture->moves_seen = moves;
	capture->moves_ts = now + MOVES_NS;
	err = capture__adopt_threads(capture);
	return err ? err : 1;
}

/* In trace mode several CPUs may wake the reader one after the other: without a rest, each for a part of a ring. */
#define REST_MS 5

static void rest(const struct capture *capture, int *timeout_ms)
{
	if (!capture->opts.trace || *timeout_ms <= REST_MS)
		return;
	sleep_ns(REST_MS * 1000000);
	*timeout_ms -= REST_MS;
}

int capture__poll(struct capture *capture, int timeout_ms, capture_handler handle, void *owner)
{
	uint64_t polled_ts;
	int err;

	capture->handle = handle;
	capture->owner = owner;
	capture->handled = 0;
	if (timeout_ms) {
		rest(capture, &timeout_ms);
		err = record_rings__wait(capture->record_rings, timeout_ms);
		if (err)
			return err;
	}
	/* The kernel side does not wake for every record: whatever is there is taken now. */
	polled_ts = monotonic_ns();
	err = record_rings__read(capture->record_rings, on_record, capture);
	if (!err)
		err = word_rings__read(capture->word_rings, handle, owner, &capture->handled);
	if (err < 0)
		return err;
	capture->polled_ts = polled_ts;
	probes__watch(capture);
	return capture->handled;
}

uint64_t capture__polled_ts(const struct capture *capture)
{
	return capture->polled_ts;
}

double capture__backlog(const struct capture *capture)
{
	double records = record_rings__backlog(capture->record_rings);
	double words = word_rings__backlog(capture->word_rings);

	return records > words ? records : words;
}

/* Of the intervals that began by a key and have not ended by it, those that made room for others. */
static uint64_t evicted_intervals(struct capture *capture, uint64_t keyed)
{
	int fd = bpf_map__fd(capture->skel->maps.keyed_intervals);
	char key[64], *last = NULL;
	uint64_t open_cnt = 0;

	while (!bpf_map_get_next_key(fd, last, key)) {
		last = key;
		open_cnt++;
	}
	return keyed > open_cnt ? keyed - open_cnt : 0;
}

uint64_t capture__load(struct capture *capture)
{
	struct cpu_context *cpus = calloc(capture->cpu_cnt, sizeof(*cpus));
	uint64_t load = 0;
	uint32_t key = 0;

	if (cpus && !bpf_map_lookup_elem(bpf_map__fd(capture->skel->maps.cpus), &key, cpus))
		for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++)
			load += cpus[cpu].seen + cpus[cpu].switch_cnt;
	free(cpus);
	return load;
}

double capture__way_ns(const struct capture *capture)
{
	return capture->way_ns;
}

void capture__counts(struct capture *capture, struct capture_counts *counts)
{
	struct cpu_context *cpus = calloc(capture->cpu_cnt, sizeof(*cpus));
	uint64_t keyed = 0;
	uint32_t key = 0;

	memset(counts, 0, sizeof(*counts));
	if (!cpus)
		return;
	if (!bpf_map_lookup_elem(bpf_map__fd(capture->skel->maps.cpus), &key, cpus)) {
		for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++) {
			counts->seen += cpus[cpu].seen;
			counts->selected += cpus[cpu].selected;
			counts->abandoned += cpus[cpu].abandoned;
			counts->asks += cpus[cpu].asks;
			counts->asks_unsure += cpus[cpu].asks_unsure;
			counts->unreadable += cpus[cpu].unreadable;
			keyed += cpus[cpu].keyed;
			counts->replies += cpus[cpu].replies;
			counts->held_by_window += cpus[cpu].window_cnt;
			counts->resent += cpus[cpu].resent_cnt;
			for (int class = 0; class < HELD_BUCKETS; class ++)
				counts->held[class].cnt += cpus[cpu].held[class];
			word_rings__add_emitted(capture->word_rings, cpu, cpus[cpu].loss);
			for (int class = 0; class < WL_LOSS_CNT; class ++) {
				counts->loss[class].emitted += cpus[cpu].loss[class].emitted;
				counts->loss[class].lost += cpus[cpu].loss[class].lost;
				capture->loss_per_cpu[cpu * WL_LOSS_CNT + class] = cpus[cpu].loss[class];
			}
		}
	}
	free(cpus);
	/* The middle of a quarter of an octave. */
	for (int class = 0; class < HELD_BUCKETS; class ++)
		counts->held[class].ns = (9 + 2 * (class % 4)) * ((1ULL << HELD_OCTAVE << class / 4) / 8);
	if (keyed && capture->stopped)
		counts->abandoned += evicted_intervals(capture, keyed);
	counts->loss[WL_LOSS_MISSED_RUN].lost = capture__missed_runs(capture);
	capture->loss_per_cpu[WL_LOSS_MISSED_RUN].lost = counts->loss[WL_LOSS_MISSED_RUN].lost;
	capture->loss_per_cpu[WL_LOSS_CUT].lost = counts->loss[WL_LOSS_CUT].lost = capture->cut_cnt;
}

const struct wl_loss_count *capture__loss_per_cpu(struct capture *capture, uint32_t *cpu_cnt)
{
	struct capture_counts counts;

	capture__counts(capture, &counts);
	*cpu_cnt = capture->cpu_cnt;
	return capture->loss_per_cpu;
}

const struct hook_survey *capture__survey(const struct capture *capture)
{
	return &capture->survey;
}

bool capture__has_hw(const struct capture *capture)
{
	return capture->hw != NULL;
}

int capture__hw_counter(const struct capture *capture, uint32_t epoch, uint32_t slot)
{
	return capture->hw ? hwcounters__slot(capture->hw, epoch, slot) : -1;
}

uint32_t capture__hw_rotations(const struct capture *capture, uint32_t *epoch_cnt)
{
	*epoch_cnt = capture->controls->hw_epoch / 2 + 1;
	return capture->hw ? hwcounters__rotation_cnt(capture->hw) : 0;
}

int capture__rotate_hw(struct capture *capture)
{
	uint32_t epoch;
	int err;

	if (!capture->hw || hwcounters__rotation_cnt(capture->hw) < 2)
		return 0;
	epoch = capture->controls->hw_epoch;
	__atomic_store_n(&capture->controls->hw_epoch, epoch + 1, __ATOMIC_SEQ_CST);
	err = hwcounters__install(capture->hw, bpf_map__fd(capture->skel->maps.hw_events), epoch + 2);
	capture->controls->hw_slots = hwcounters__slot_cnt(capture->hw, epoch + 2);
	__atomic_store_n(&capture->controls->hw_epoch, epoch + 2, __ATOMIC_SEQ_CST);
	return err;
}
