/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judgement of a self-test: what was seen against what the witness knows.  Pure: no process, no kernel.
 *
 * A check is made in rounds.  A round whose interval is flagged (a kernel that leaves out events says so) is left out;
 * of those that remain, at most one in five may miss, because a kernel may also leave out an event without a trace.
 */
#ifndef WHYLATE_SELFTEST_CHECK_H
#define WHYLATE_SELFTEST_CHECK_H

#include "base/vec.h"
#include "selftest/deed.h"

#include <stdbool.h>

#define CHECK_ROUNDS     5  /* enough, if all of them hold */
#define CHECK_ROUNDS_MAX 18 /* tried, if some do not */
#define CHECK_WHY_LEN    256

/* Two readings of one clock on two CPUs may differ by this much. */
#define CHECK_CLOCK_NS 100000ULL

struct check {
	const char *name;
	const char *feature; /* of hook.def, "" for none */
	const char *unit;
	char hook[32]; /* kinds of hooks in use, "" for none */
	uint32_t tier; /* in use; 0: none */
	uint64_t witness, seen;
	uint64_t low;       /* the least that it may have been, for all that the witness knows */
	uint64_t length_ns; /* of all that was seen, where it was counted; 0: it has none */
	bool ok, skipped;
	char why[CHECK_WHY_LEN]; /* why it failed or was skipped, what was left out; "": nothing to say */
};

typedef VEC(struct check) checks;

struct check_round {
	uint64_t witness, seen;
	uint64_t low, high; /* seen must be within */
	uint64_t length_ns; /* of what was counted, 0: it has none */
	const char *wrong;  /* something else that does not hold; NULL: nothing */
};

struct check_rounds {
	struct check_round rounds[CHECK_ROUNDS_MAX];
	uint32_t cnt;
	uint32_t tried, flagged, unseen;
};

void check_skip(struct check *check, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void check_fail(struct check *check, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One number that must be exactly what the witness says. */
void check_exact(struct check *check, uint64_t witness, uint64_t seen);
/* One that may be apart from it by so much. */
void check_near(struct check *check, uint64_t witness, uint64_t seen, uint64_t apart_max);

/* Is anything uncertain about the record? */
bool record_flagged(const struct wl_interval_record *record);
/* What every record must fulfil: its parts sum to its length, its times lie within before_ts and after_ts. NULL: it
 * does. */
const char *record_wrong(const struct wl_interval_record *record, uint64_t before_ts, uint64_t after_ts);
/* One deed that was seen. */
void deed_judge(enum deed_kind kind, const struct wl_interval_record *record, const struct deed_report *report,
		struct check_round *round);
/* Counts it as flagged, or adds the round. */
void check_rounds_add(struct check_rounds *rounds, const struct check_round *round, bool flagged);
/* Has enough been tried to conclude? */
bool check_rounds_enough(const struct check_rounds *rounds);
/* All rounds are made. */
void check_conclude(struct check *check, const struct check_rounds *rounds);

/* The result: 0 or -EIO. */
bool checks_passed(const checks *list);
int checks_print_text(const checks *list, const char *kernel, const char *machine);
int checks_print_json(const checks *list, const char *kernel, const char *machine);

#endif
