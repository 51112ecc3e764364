/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A self-test under way: one witness, and one capture of it at a time. */
#ifndef WHYLATE_SELFTEST_SELFTEST_INTERNAL_H
#define WHYLATE_SELFTEST_SELFTEST_INTERNAL_H

#include "capture/capture.h"
#include "probe/resolve.h"
#include "selftest/check.h"
#include "selftest/selftest.h"
#include "selftest/witness.h"

/* Lines of its symbol list, of which each names one function. */
#define STAGE_PROBE_CNT 2

/* What is kept of a sampled stack. */
struct stage_stack {
	uint64_t ts, sid;
	uint32_t tid, state, flags;
	bool leads_to_deed; /* the function in which deeds are done is on it */
};

struct stage {
	const struct selftest_options *options;
	struct witness witness;
	struct capture *capture;
	struct probe_set *probes; /* of the symbol list; the capture's */
	checks *list;

	target_processes processes;
	target_listeners listeners;
	probe_lines lines;
	struct program *program;
	struct probe_targets targets;

	/* What has come out of the rings since stage_forget(). */
	VEC(struct wl_interval_record) intervals;
	VEC(struct wl_task_record) tasks;
	/* trace mode only */
	VEC(struct wl_segment_record) segments;
	VEC(struct wl_wakeup_record) wakeups;
	VEC(struct wl_socket_record) sockets;
	VEC(struct wl_block_record) blocks;
	VEC(struct wl_timer_record) timers;
	VEC(struct stage_stack) stacks;
	VEC(struct wl_stack_wait_record) stack_waits;
	VEC(uint64_t) deed_keys;      /* of waits beneath the function that is called */
	uint64_t deed_addr, deed_end; /* where WITNESS_DEED is in the witness; 0: not known */
	uint64_t interval_cnt;        /* since the capture began */
	uint32_t probe_tier;          /* 0: not known */
	int adopt_err;                /* of a child whose functions could not be probed */
};

/*
 * What a capture is after: calls of functions, of children's too, socket requests, these with hooks that are not always
 * attached, or calls with all detail.
 */
enum stage_kind { STAGE_FUNCTIONS, STAGE_NEWCOMERS, STAGE_SOCKETS, STAGE_WINDOWS, STAGE_TRACE };

/* Of intervals that are calls of the function in that line of the list. */
static inline uint32_t stage_type(uint32_t line_idx)
{
	return (uint32_t)WL_SOURCE_FUNCTION << 16 | line_idx;
}

/* Starts a capture of the witness; false after one failed check of that name. */
bool stage_open(struct stage *stage, const char *name, enum stage_kind kind);
void stage_close(struct stage *stage);
void stage_forget(struct stage *stage);

/* Takes what is in the rings, until `enough` or the time is over; false: it is over. */
typedef bool (*stage_condition)(const struct stage *stage, const void *want);
bool stage_await(struct stage *stage, stage_condition enough, const void *want);
/* Such a condition: every interval that the kernel side has sent is here, or lost. */
bool stage_accounted(const struct stage *stage, const void *want);

/* A new line of the result, of a stage that may not be open; NULL: out of memory, which is said. */
struct check *stage_line(struct stage *stage, const char *name, const char *feature, const char *unit);
/* A new line of the result; NULL where the feature is not to be had here, which the line then says. */
struct check *stage_check(struct stage *stage, const char *name, enum hook_feature feature, const char *unit);

/* Orders it and hears the answer; false after a failed check. */
bool stage_ask(struct stage *stage, struct check *check, enum witness_task task, uint32_t arg,
	       struct witness_answer *answer);

void selftest_functions(struct stage *stage);
/* After selftest_functions(), with a capture and a witness of its own. */
void selftest_newcomers(const struct selftest_options *options, checks *list, uint32_t probe_tier);
void selftest_sockets(struct stage *stage);
void selftest_windows(struct stage *stage);
void selftest_trace(struct stage *stage);

#endif
