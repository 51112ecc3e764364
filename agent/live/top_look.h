/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `whylate top` shows of a time: the analysis that a report rests on, made by a thread, a look at a time. */
#ifndef WHYLATE_LIVE_TOP_LOOK_H
#define WHYLATE_LIVE_TOP_LOOK_H

#include "analysis/findings.h"
#include "analysis/timeline.h"
#include "shard/reader.h"

#include <pthread.h>
#include <stdatomic.h>

struct look_options {
	const char *const *paths;
	size_t path_cnt;
	const char *type; /* NULL: all */
	uint64_t since_wall_ns, until_wall_ns;
	double tail;
	size_t bucket_cnt; /* of the timeline */
};

struct look {
	struct look_options options;
	char type[128];
	struct shard_reader *reader;
	struct findings findings;
	struct timeline timeline;
	int err; /* 0: findings and timeline are there */
	uint64_t took_ns;
	pthread_t thread;
	bool joined;
	atomic_bool done;
};

/* Begins one; options are copied, but for the paths.  NULL and errno. */
struct look *look__begin(const struct look_options *options);
bool look__done(const struct look *look);
/* Waits for its end; NULL-safe. */
void look__wait(struct look *look);
void look__free(struct look *look);

#endif
