/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings for other tools.  Everything is written to `out` as it is made; errors of `out` are told at the end
 * (-EIO).
 */
#ifndef WHYLATE_VIEW_EXPORT_H
#define WHYLATE_VIEW_EXPORT_H

#include "analysis/paths.h"
#include "analysis/roots.h"
#include "shard/reader.h"

#include <stdio.h>

/*
 * The rows of every table, or of one (NULL: all), as they are in the shards.
 *   jsonl  an object a line: "table", "session", every column, and "host", by the shard's name; null where it is null
 *   csv    table after table, each with a line of names before it and an empty line after it; the first two columns and
 *          the last one are the same as above; null is an empty field, an empty text is ""
 * 0; -ENOENT: there is no such table; -ENOMEM, -EIO.
 */
int export_jsonl(FILE *out, struct shard_reader *reader, const char *table);
int export_csv(FILE *out, struct shard_reader *reader, const char *table);

/*
 * Folded stacks for flame graphs, "TYPE;WAIT;THREAD;CATEGORY;OBJECT;CULPRIT NANOSECONDS": the time of intervals off the
 * CPU by reason and culprit, weights applied.  paths NULL: what the counters say, without threads.
 */
int export_folded(FILE *out, const struct dataset *dataset, const struct paths *paths);
/*
 * The same for sampled user stacks, "stack;CATEGORY;STATE;root;…;leaf NANOSECONDS", on the CPU without a state; nothing
 * where the recording has none.
 */
int export_folded_stacks(FILE *out, struct shard_reader *reader);

/*
 * A Perfetto trace (docs/perfetto.proto has what is used of the format): a track per thread with its states, flows
 * along wake-ups and hand-offs, a track per interval with its critical path.
 */
int export_perfetto(FILE *out, const struct traces *traces, const struct samples *samples);

/*
 * Time per request by call path, for pprof: gzip'd profile.proto with the sample types late_ns, typical_ns and
 * difference_ns, and the labels request (late, typical), type, context, handed_on, category and thread.  tail: from
 * which quantile on requests are late; typical ones are those up to the median.
 */
int export_pprof(FILE *out, const struct dataset *dataset, const struct paths *paths, const struct roots *roots,
		 double tail);

#define EXPORT_SAID 1

struct export_source {
	const char *path;  /* named in messages */
	const char *table; /* of csv and jsonl; NULL: all */
};

struct export_format {
	const char *name;
	/* 0, -errno, or EXPORT_SAID after a line that says what the recording lacks. */
	int (*run)(FILE *out, struct shard_reader *reader, const struct export_source *from);
	bool by_table, binary;
};

/* NULL: there is none of that name. */
const struct export_format *export_format_of(const char *name);

#endif
