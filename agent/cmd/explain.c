// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/story.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "shard/open.h"
#include "view/text_story.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char help[] = "Usage: whylate explain DIR|SHARD… SID [--all]\n"
			   "Tells one request's critical path step by step, from a recording with --mode trace: who\n"
			   "it waited for, and in which call path that was (where stacks were sampled).\n"
			   "      --all   every step, also the short ones\n"
			   "`whylate report` shows the slowest requests with their SID.\n";

/* Decimal, or hexadecimal with 0x. */
static bool parse_sid(const char *text, uint64_t *sid)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*sid = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
	return !*end && !errno;
}

static int tell(const struct traces *traces, const struct samples *samples, const struct trace_interval *interval,
		const struct view_opts *view)
{
	struct arena *arena = arena__new();
	struct path path = {0};
	struct story story;
	int err = arena ? story_make(&story, traces, samples, interval, &path, arena) : -ENOMEM;

	if (!err)
		err = view_story(stdout, &story, view);
	path__clear(&path);
	arena__free(arena);
	return err;
}

/* The sid of every recording that has it: an exit code. */
static int explain(const struct traces *traces, const struct samples *samples, uint64_t sid, const char *where,
		   const struct view_opts *view)
{
	size_t found = 0;
	int err = 0;

	for (size_t i = 0; i < traces->sessions.cnt && !err; i++) {
		const struct trace_interval *interval = traces_interval(traces, &traces->sessions.items[i], sid);

		if (!interval)
			continue;
		if (found++)
			putchar('\n');
		err = tell(traces, samples, interval, view);
	}
	if (err) {
		log_error("cannot explain sid %llu: %s", (unsigned long long)sid, strerror(-err));
		return EXIT_FAILED;
	}
	if (!found) {
		log_error("there is no interval with sid %llu in '%s', or it was not kept: whylate report %s shows the "
			  "slowest",
			  (unsigned long long)sid, where, where);
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int explain_run(const char *const *paths, size_t path_cnt, uint64_t sid, const struct view_opts *view)
{
	const struct confine_reader needs = {.paths = paths, .path_cnt = path_cnt};
	struct shard_reader *reader;
	struct samples samples;
	struct traces traces;
	int code = EXIT_FAILED, found;

	confine_reader(&needs);
	reader = shards_open(paths, path_cnt);
	if (!reader)
		return EXIT_FAILED;
	progress_begin("reading");
	found = traces_load(&traces, reader);
	if (!found)
		log_error("'%s' has no chains to explain: record with --mode trace", paths[0]);
	if (found > 0) {
		int err = samples_load(&samples, &traces, reader);

		progress_end();
		if (!err) {
			code = explain(&traces, &samples, sid, paths[0], view);
			samples_free(&samples);
		}
		traces_free(&traces);
		found = err;
	}
	progress_end();
	if (found < 0)
		log_error("cannot read '%s': %s", paths[0], strerror(-found));
	shard_reader__free(reader);
	return code;
}

struct explain_options {
	bool all;
};

static const struct option_row rows[] = {OPTION_FLAG("all", 0, struct explain_options, all)};

int cmd_explain(int argc, char **argv)
{
	struct explain_options options = {0};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	struct view_opts view;
	uint64_t sid;
	int code = OPTIONS_TAKE("explain", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	view = view_opts_stdout(options.all ? 0 : 1);
	if (argc - optind < 2)
		return usage_error("explain", "it wants a recording and a SID: whylate explain DIR SID");
	if (!parse_sid(argv[argc - 1], &sid))
		return usage_error("explain", "'%s' is no SID: it wants a number, decimal or 0x…", argv[argc - 1]);
	return explain_run((const char *const *)argv + optind, (size_t)(argc - optind - 1), sid, &view);
}
