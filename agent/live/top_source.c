// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/top_source.h"

#include "analysis/dataset.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/privilege.h"
#include "live/recorder.h"
#include "shard/open.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define SHARD_NS  5000000000ULL
#define BEHIND_NS 2500000000ULL /* by when a request that ended has been written */
#define PRUNE_NS  1000000000ULL

static int open_live(struct top_source *source, const struct top_options *options)
{
	int err;

	*source = (struct top_source){.is_live = true, .speed = 1, .end_wall_ns = UINT64_MAX, .scratch = {.fd = -1}};
	err = scratch__make(&source->scratch);
	if (err) {
		log_error("cannot make a temporary directory in " SCRATCH_PLACE ": %s", strerror(-err));
		return EXIT_FAILED;
	}
	source->own_path = source->scratch.path;
	source->paths = &source->own_path;
	source->path_cnt = 1;
	source->keep = watch_keep__new(source->scratch.path, "", options->window_ns);
	source->recorder = source->keep ? recorder_start(options->record, source->scratch.path, SHARD_NS) : -1;
	if (source->recorder < 0) {
		log_error("cannot start the recorder: %s", strerror(errno));
		source->recorder = 0;
		top_source__close(source);
		return EXIT_FAILED;
	}
	source->begin_wall_ns = source->at_wall_ns = realtime_ns();
	/* A page goes into the working directory. */
	privilege_confine_viewer(false, !dir_is_own("."));
	return EXIT_DONE;
}

/* From the first begin to the last end. */
static int find_span(struct top_source *source, const struct dataset *dataset)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++) {
		uint64_t clock_ns = (uint64_t)dataset->session_clock_ns[dataset->session[row]];
		uint64_t from_ns = dataset->begin_ts[row] + clock_ns, to_ns = from_ns + dataset->latency_ns[row];

		if (!clock_ns)
			continue;
		begin_ns = from_ns < begin_ns ? from_ns : begin_ns;
		end_ns = to_ns > end_ns ? to_ns : end_ns;
	}
	source->begin_wall_ns = source->at_wall_ns = begin_ns;
	source->end_wall_ns = end_ns + 1;
	return end_ns > begin_ns ? 0 : -ENODATA;
}

static int open_replay(struct top_source *source, const struct top_options *options)
{
	const struct dataset_filter filter = {.without_events = true};
	struct shard_reader *reader = shards_open(options->paths, options->path_cnt);
	struct dataset dataset;
	int err;

	*source = (struct top_source){
		.paths = options->paths,
		.path_cnt = options->path_cnt,
		.speed = options->speed,
		.scratch = {.fd = -1},
	};
	if (!reader)
		return EXIT_FAILED;
	privilege_confine_viewer(true, !dir_is_own("."));
	err = dataset_load(&dataset, reader, &filter);
	if (!err) {
		err = find_span(source, &dataset);
		dataset_free(&dataset);
	}
	shard_reader__free(reader);
	if (err)
		log_error("'%s' cannot be replayed: %s", options->paths[0],
			  err == -ENOENT    ? "there is no table of intervals in it"
			  : err == -ENODATA ? "there is no request in it whose time of day is known"
					    : strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

int top_source__open(struct top_source *source, const struct top_options *options)
{
	return options->record ? open_live(source, options) : open_replay(source, options);
}

static void look_after_recorder(struct top_source *source)
{
	int status;

	if (!source->recorder || waitpid(source->recorder, &status, WNOHANG) != source->recorder)
		return;
	source->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
	source->recorder = 0;
	source->end_wall_ns = realtime_ns();
}

void top_source__tick(struct top_source *source)
{
	uint64_t now_ts = monotonic_ns(), since_ns = source->moved_ts ? now_ts - source->moved_ts : 0;

	source->moved_ts = now_ts;
	if (!source->is_live) {
		if (!source->paused)
			top_source__step(source, (int64_t)(source->speed * (double)since_ns));
		return;
	}
	look_after_recorder(source);
	if (!source->paused)
		source->at_wall_ns = source->recorder ? realtime_ns() - BEHIND_NS : source->end_wall_ns;
	/* After its end, what is left stays. */
	if (source->recorder && now_ts - source->pruned_ts >= PRUNE_NS) {
		(void)watch_keep__look(source->keep, NULL);
		source->pruned_ts = now_ts;
	}
}

void top_source__step(struct top_source *source, int64_t ns)
{
	if (ns < 0 && (uint64_t)-ns > source->at_wall_ns - source->begin_wall_ns)
		source->at_wall_ns = source->begin_wall_ns;
	else if (ns > 0 && (uint64_t)ns > source->end_wall_ns - source->at_wall_ns)
		source->at_wall_ns = source->end_wall_ns;
	else
		source->at_wall_ns += (uint64_t)ns;
}

void top_source__close(struct top_source *source)
{
	int status;

	if (source->recorder > 0) {
		kill(source->recorder, SIGTERM);
		if (waitpid(source->recorder, &status, 0) == source->recorder)
			source->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
		source->recorder = 0;
	}
	watch_keep__free(source->keep);
	source->keep = NULL;
	scratch__remove(&source->scratch);
}
