/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests by the one at the front (Whodunit §8.4, table 1).  A request that a program sends to another one while it
 * works for a request of its own is asked for by that one, across processes and hosts; the first one of such a chain is
 * at the front.  What programs behind take, and who delays whom in them, is told by the types at the front.
 *
 * It takes --mode trace, and that the requests of all programs were kept.  A request whose bytes were sent for several
 * ones is asked for by none of them, and counted.
 */
#ifndef WHYLATE_ANALYSIS_FRONTS_H
#define WHYLATE_ANALYSIS_FRONTS_H

#include "analysis/traces.h"

#include <math.h>

#define FRONT_NONE UINT32_MAX

/* How it is known who asked. */
enum front_link {
	FRONT_OUTSIDE,   /* by nobody who is recorded */
	FRONT_ASKED,     /* by a request of the recording */
	FRONT_UNKNOWN,   /* by a program that is followed: for none of its requests, or for one that was not kept */
	FRONT_AMBIGUOUS, /* for one of several */
	FRONT_LINKS,
};

struct front_of {
	uint32_t asked_by; /* index into traces.intervals; FRONT_NONE: not FRONT_ASKED */
	uint32_t front;    /* index into traces.intervals: the first one of its chain, perhaps itself */
	uint8_t link;      /* enum front_link */
	uint8_t certainty; /* enum wl_certainty, of the hand-off */
};

/* What the requests of one type at the front took in one program. */
struct front_line {
	uint32_t type, program; /* index into the strings */
	double fronts;          /* weighted: requests at the front of that type … */
	double own;             /* … that are of this program */
	double count;           /* weighted: requests of the program */
	double cpu_ns, wait_ns; /* weighted sums */
	double program_cpu_ns;  /* weighted sum, of all lines of the program */
	double lock_ns;         /* that they waited for locks which requests of others at the front had */
};

/* Requests of a program for one type at the front that waited for one for another request at the front. */
struct front_crossing {
	uint32_t program, type, by_type; /* index into the strings */
	uint8_t category;                /* LOCK, RUNQ, QUEUE */
	double count, wait_ns;
	uint32_t last_row;
};

struct fronts {
	const struct traces *traces;
	struct intern strings;                /* 0 is "" */
	struct front_of *of;                  /* by index into traces.intervals */
	uint32_t *programs;                   /* likewise: index into the strings */
	size_t links[FRONT_LINKS];            /* how many of each */
	VEC(struct front_line) lines;         /* by type and program; the program with the most CPU time first */
	VEC(struct front_crossing) crossings; /* the longest wait in all first */
	struct idmap line_ids, crossing_ids, program_ids;
	VEC(uint32_t) program_names; /* by id of the name and the host in the traces: index into the strings */
};

/* 0 or -ENOMEM; fronts__free() in any case. */
int fronts__make(struct fronts *fronts, const struct traces *traces);
void fronts__free(struct fronts *fronts); /* of one that is all 0, too */

/* Some request was asked for by another one. */
static inline bool fronts_have(const struct fronts *fronts)
{
	return fronts->links[FRONT_ASKED];
}

/* Counts the interval, of that weight, on its line.  0 or -ENOMEM. */
int fronts__add(struct fronts *fronts, uint32_t interval, double weight, double cpu_ns, double wait_ns);
/* It waited for the other one; nothing where both are for one request at the front.  0 or -ENOMEM. */
int fronts__add_wait(struct fronts *fronts, uint32_t interval, uint32_t other, uint8_t category, double weight,
		     uint64_t ns);
/* After all of them: what takes all lines, and orders.  0 or -ENOMEM. */
int fronts__settle(struct fronts *fronts);

/* Of what all requests of the program took; NAN: nothing. */
static inline double front_cpu_share(const struct front_line *line)
{
	return line->program_cpu_ns > 0 ? line->cpu_ns / line->program_cpu_ns : NAN;
}

static inline const char *fronts_string(const struct fronts *fronts, uint32_t id)
{
	return fronts->strings.strings[id];
}

#endif
