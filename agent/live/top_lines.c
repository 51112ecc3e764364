// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "live/top_look.h"
#include "live/top_run.h"
#include "view/top.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS 100000000L

/* The next moment to show, at_wall_ns of the source.  False: there is none. */
static bool wait_for(struct top_source *source, uint64_t until_wall_ns)
{
	if (!source->is_live) {
		bool is_over = source->at_wall_ns >= source->end_wall_ns;

		top_source__step(source, (int64_t)(until_wall_ns - source->at_wall_ns));
		return !is_over;
	}
	do {
		top_source__tick(source);
		if (source->at_wall_ns >= until_wall_ns)
			return true;
		sleep_ns(TICK_NS);
	} while (!top_stop_requested && source->recorder);
	return false;
}

static int print(const struct look *look, const struct top_source *source, const struct top_options *options)
{
	const struct top_view view = {
		.findings = &look->findings,
		.timeline = &look->timeline,
		.shown_wall_ns = source->at_wall_ns,
	};
	int err = options->json ? view_json(stdout, &look->findings.report) : view_top_line(stdout, &view);

	if (!err && fflush(stdout))
		err = -EIO;
	if (err)
		log_error("cannot write: %s", strerror(-err));
	return err;
}

/* Was recorded throughout the interval?  Attaching takes a while. */
static bool is_whole(const struct look *look, const struct top_source *source, const struct top_options *options)
{
	const struct dataset *dataset = &look->findings.dataset;

	return !source->is_live || !dataset->host_cnt ||
	       dataset->hosts[0].begin_wall_ns + options->interval_ns <= source->at_wall_ns;
}

/* 1: printed; 0: there is nothing to print so far; -errno. */
static int show(struct top_source *source, const struct top_options *options)
{
	uint64_t window_ns = options->window_ns > options->interval_ns ? options->window_ns : options->interval_ns;
	size_t bucket_cnt = (size_t)(window_ns / options->interval_ns);
	const struct look_options look_options = {
		.paths = source->paths,
		.path_cnt = source->path_cnt,
		.type = options->type,
		/* Whole intervals, the last of which is the line's. */
		.since_wall_ns = source->at_wall_ns - bucket_cnt * options->interval_ns,
		.until_wall_ns = source->at_wall_ns,
		.tail = options->tail,
		.bucket_cnt = bucket_cnt,
	};
	struct look *look = look__begin(&look_options);
	int err;

	if (!look)
		return -errno;
	look__wait(look);
	err = look->err;
	if (!err && !is_whole(look, source, options))
		err = -ENODATA;
	if (!err)
		err = print(look, source, options);
	look__free(look);
	/* Nothing was written so far, or nothing of that time. */
	return err == -ENOENT || err == -ESRCH || err == -ENODATA ? 0 : err ? err : 1;
}

int top_run_lines(const struct top_options *options)
{
	struct top_source source;
	int code = top_source__open(&source, options), err;
	uint64_t next_wall_ns, shown = 0;

	if (code)
		return code;
	next_wall_ns = source.begin_wall_ns + options->interval_ns;
	err = options->json ? 0 : view_top_heading(stdout);
	while (!err && !top_stop_requested && (!options->count || shown < options->count)) {
		if (!wait_for(&source, next_wall_ns))
			break;
		err = show(&source, options);
		shown += err > 0;
		err = err > 0 ? 0 : err;
		/* On a busy machine one that is late leaves out what it has missed. */
		next_wall_ns += options->interval_ns;
		if (source.is_live && next_wall_ns < source.at_wall_ns)
			next_wall_ns = source.at_wall_ns + options->interval_ns;
	}
	if (err)
		log_error("the analysis failed: %s", strerror(-err));
	top_source__close(&source);
	return err ? EXIT_FAILED : source.exit_code;
}
