/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which roots get a line of their own, and how much of each interval they took; for roots_*.c. */
#ifndef WHYLATE_ANALYSIS_ROOTS_REPORT_H
#define WHYLATE_ANALYSIS_ROOTS_REPORT_H

#include "analysis/path_rows.h"
#include "analysis/root_split.h"
#include "analysis/roots.h"

#define ROOT_KEYS_MAX  24 /* that are split by call paths */
#define ROOT_LINES_MAX 40 /* the rest share one */

#define ROOT_NO_KEY UINT32_MAX

/* A root and the call path that tells it from others with the same key. */
struct root_line {
	uint32_t key;
	uint32_t untold; /* a key of requests whose type was not seen, with the same call path; ROOT_NO_KEY: none */
	struct root_branch branch;  /* cut SAMPLE_ROOT: what no call path separates, or no sample was taken of */
	uint64_t *ns;               /* by ranked row */
	uint64_t *saved_ns;         /* by ranked row: what goes with its time, and its time */
	double late_ns, typical_ns; /* of the mean interval */
	struct share_line share;
};

/* One way of a line. */
struct root_line_way {
	uint32_t line, way;
	double tail_ns; /* of the difference between the mean late and the mean typical interval */
};

/* Time of a line that was a row's own work. */
struct root_own {
	uint32_t line, at; /* ranked row */
	uint64_t ns;
};

struct root_lines {
	const struct roots *roots;
	const struct path_rows *ranked;
	struct root_line lines[ROOT_LINES_MAX + 1]; /* the last one is what is left */
	size_t cnt;                                 /* without the last one */
	VEC(struct root_line_way) ways;
	VEC(struct root_own) owns;
	uint64_t *columns;
	double unknown_ns; /* late − typical of roots that are not known */
	double own_ns;     /* of the recorder */
	double tail_ns;    /* of all */
};

/* 0 or -ENOMEM; root_lines__free() in either case. */
int root_lines__make(struct root_lines *lines, const struct roots *roots, const struct path_rows *ranked);
void root_lines__free(struct root_lines *lines);

/* A line as a cause without rank and gain; its share was computed, if there is one.  0 or -ENOMEM. */
int root_lines__cause(struct cause *cause, struct report *report, const struct root_lines *lines, uint32_t line);

/* By ranked row: how much shorter it were without a root. */
struct root_saved {
	uint64_t *ns, *least_ns; /* at most the latency; least_ns <= ns */
	bool *alone;             /* rows that the root and its backlogs left alone; none: nothing is known of such */
	bool at_least;           /* the waits without the root are not known, and may be shorter */
};

/* 0 or -ENOMEM; root_saved__free() in either case. */
int root_saved__init(struct root_saved *saved, size_t row_cnt);
void root_saved__free(struct root_saved *saved);

/*
 * The latency if each row were shorter by that much (NULL: by nothing), and how sure that is.  Exact, from weighted
 * rows.  The intervals span those of three accounts (block bootstrap each): each row shorter by ns, or by least_ns, or
 * all rows like those left alone; so the error of the model is in them, too.  0 or -ENOMEM.
 */
int root_gain_compute(struct cause_gain *gain, const struct root_saved *saved, const struct path_rows *ranked,
		      const struct share_opts *opts);

/* What each entry of roots->entries saves beyond its own time: see root_gain.c.  NULL: no memory. */
uint64_t *root_gain_besides(const struct roots *roots);

/* What goes with a root beyond its own time; see root_backlog.c. */
struct root_backlog;

/* The lines outlive it.  NULL: no memory. */
struct root_backlog *root_backlog__new(const struct root_lines *lines);
void root_backlog__free(struct root_backlog *backlog);
/* What goes with the line; valid until the next call.  0 or -ENOMEM. */
int root_backlog__save(struct root_backlog *backlog, uint32_t line, struct root_saved *saved);

/* The words for a root: cause->what and evidence; the rest of the cause is set.  0 or -ENOMEM. */
int root_describe(struct cause *cause, const struct report *report, const struct share_line *share,
		  const struct blame_ids *pids, struct arena *arena);

#endif
