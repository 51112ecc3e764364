// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/top_look.h"

#include "base/clock.h"
#include "base/priority.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BOOTSTRAP_CNT 200
#define NICE          10

static int make(struct look *look)
{
	const struct look_options *options = &look->options;
	const struct findings_opts opts = {
		.filter =
			{
				.type = options->type,
				.since_wall_ns = options->since_wall_ns,
				.until_wall_ns = options->until_wall_ns,
				.without_events = true,
			},
		.tail = options->tail,
		.bootstrap_cnt = BOOTSTRAP_CNT,
		.keep_rows = true,
		.without_samples = true,
	};
	const char *bad;
	int err;

	look->reader = shard_reader__open(options->paths, options->path_cnt, &bad);
	if (!look->reader)
		return -errno;
	err = findings_make(&look->findings, look->reader, &opts);
	if (err)
		return err;
	err = timeline_make(&look->timeline, &look->findings.report, options->since_wall_ns, options->until_wall_ns,
			    options->bucket_cnt);
	if (err)
		findings_free(&look->findings);
	return err;
}

static void *run(void *ctx)
{
	struct look *look = ctx;
	uint64_t begin_ts = monotonic_ns();

	/* Whoever looks waits for it: behind others, but no idle task, which might wait for ever. */
	(void)priority_raise(0);
	setpriority(PRIO_PROCESS, 0, NICE);
	look->err = make(look);
	look->took_ns = monotonic_ns() - begin_ts;
	atomic_store(&look->done, true);
	return NULL;
}

struct look *look__begin(const struct look_options *options)
{
	struct look *look = calloc(1, sizeof(*look));
	int err;

	if (!look)
		return NULL;
	look->options = *options;
	if (options->type)
		snprintf(look->type, sizeof(look->type), "%s", options->type);
	look->options.type = options->type ? look->type : NULL;
	err = pthread_create(&look->thread, NULL, run, look);
	if (!err)
		return look;
	free(look);
	errno = err;
	return NULL;
}

bool look__done(const struct look *look)
{
	return atomic_load(&look->done);
}

void look__wait(struct look *look)
{
	if (look && !look->joined)
		pthread_join(look->thread, NULL);
	if (look)
		look->joined = true;
}

void look__free(struct look *look)
{
	if (!look)
		return;
	look__wait(look);
	if (!look->err) {
		timeline_free(&look->timeline);
		findings_free(&look->findings);
	}
	shard_reader__free(look->reader);
	free(look);
	malloc_trim(0);
}
