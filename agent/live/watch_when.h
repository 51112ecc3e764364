/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The condition of `whylate watch`: FIGURE > VALUE [for DURATION] [of TYPE], or with <, over the requests that ended in
 * the last DURATION (10 s).  FIGURE and VALUE: mean or p99 (any percentile) and a duration; rate and requests a second;
 * share(DURATION), of the requests that took longer, and a percentage.
 */
#ifndef WHYLATE_LIVE_WATCH_WHEN_H
#define WHYLATE_LIVE_WATCH_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_REQUESTS_MIN 5 /* kept requests beyond the value, before a mean, percentile or share is believed */

enum watch_figure { WATCH_MEAN, WATCH_PERCENTILE, WATCH_RATE, WATCH_SHARE };

struct watch_when {
	enum watch_figure figure;
	double quantile;   /* of WATCH_PERCENTILE */
	uint64_t share_ns; /* of WATCH_SHARE */
	bool below;        /* < */
	double value;      /* ns, requests a second, or a share */
	uint64_t for_ns;
	char type[128]; /* "": all */
};

/* 0 or -EINVAL. */
int watch_when_parse(struct watch_when *when, const char *text);

/* The requests of the last for_ns. */
struct watch_state;

struct watch_state *watch_state__new(const struct watch_when *when);
void watch_state__free(struct watch_state *state);
/* One request, which stands for `weight`.  0 or -ENOMEM. */
int watch_state__add(struct watch_state *state, uint64_t end_ts, uint64_t latency_ns, double weight);
/*
 * Is the condition met at that time?  *value is the figure, NAN without requests.  Never before a whole for_ns has been
 * observed (since begin_ts).
 */
bool watch_state__met(struct watch_state *state, uint64_t begin_ts, uint64_t now_ts, double *value);

#endif
