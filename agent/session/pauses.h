/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock of a recording that pauses: pauses are counted, and do not count as recorded. */
#ifndef WHYLATE_SESSION_PAUSES_H
#define WHYLATE_SESSION_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* All 0: there was none. */
struct pauses {
	uint64_t begin_ts; /* of the one under way, 0: none is */
	uint64_t held_ts;  /* the recording is longer by what of it was before */
	uint64_t ns;       /* of all that are over */
	uint32_t cnt;
};

static inline void pauses__begin(struct pauses *pauses, uint64_t now)
{
	pauses->begin_ts = pauses->held_ts = now;
	pauses->cnt++;
}

/* By how much the recording is to be longer, since the last call. */
static inline uint64_t pauses__hold(struct pauses *pauses, uint64_t now)
{
	uint64_t ns = pauses->begin_ts ? now - pauses->held_ts : 0;

	pauses->held_ts = now;
	return ns;
}

/* Likewise, and the recording goes on. */
static inline uint64_t pauses__end(struct pauses *pauses, uint64_t now)
{
	uint64_t ns = pauses__hold(pauses, now);

	pauses->ns += pauses->begin_ts ? now - pauses->begin_ts : 0;
	pauses->begin_ts = 0;
	return ns;
}

static inline uint64_t pauses__ns(const struct pauses *pauses, uint64_t now)
{
	return pauses->ns + (pauses->begin_ts ? now - pauses->begin_ts : 0);
}

#endif
