/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A record travels down once: records.c has a table of the sinks that take each kind, and calls them in that order.  A
 * sink knows one subject; what it finds out about an interval goes on with the interval, in *taken.
 */
#ifndef WHYLATE_SESSION_SINKS_H
#define WHYLATE_SESSION_SINKS_H

#include <whylate/record.h>

#include <stdbool.h>

struct recording;

/* One record on its way. */
struct taken {
	const struct wl_record_header *header; /* as it came out of the ring */
	/* A copy of what every interval has, with its type once the names have taken it; NULL: it is no interval. */
	struct wl_brief_record *ended;
	struct wl_interval_record *kept; /* the same, with all that it met; NULL: it is not kept */
	uint32_t flags;                  /* of its row: the record's, and those due to its calls */
	double weight;                   /* how many of its like its row stands for; 0: it has none */
	bool is_impossible;              /* its times cannot be true: no further sink takes it */
	bool is_early;                   /* it executes a statement whose preparation was not read so far */
};

/*
 * The sinks.  Each takes the kinds that the table names it for, does nothing where its subject is not recorded, and
 * returns 0 or -errno, which ends the recording.
 */
int recording_retention_take(struct recording *recording, struct taken *taken);
/* Types of requests; names of threads and their rows. */
int recording_names_take(struct recording *recording, struct taken *taken);
int recording_summaries_take(struct recording *recording, struct taken *taken);
/* With --metrics. */
int recording_metrics_take(struct recording *recording, struct taken *taken);
int recording_trace_take(struct recording *recording, struct taken *taken);
int recording_invocations_take(struct recording *recording, struct taken *taken);
/* The row of one that is kept. */
int recording_intervals_take(struct recording *recording, struct taken *taken);
int recording_samples_take(struct recording *recording, struct taken *taken);
/* Which processes the target is. */
int recording_processes_take(struct recording *recording, struct taken *taken);

#endif
