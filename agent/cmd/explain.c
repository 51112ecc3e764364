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
#include <sys/types.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate explain DIR|SHARD… [SID] [--all]\n"
	"Tells one request's critical path step by step, from a recording with --mode trace: who\n"
	"it waited for, and in which call path that was (where stacks were sampled).\n"
	"      --all   every step, also the short ones\n"
	"Without SID it tells the three slowest requests; `whylate report` shows those of each cause.\n";

#define SLOWEST_CNT 3

/* Which requests: the one of that number in each recording, or the slowest. */
struct wanted {
	uint64_t sid;
	bool slowest;
};

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

/* The slowest first. */
static size_t find_slowest(const struct traces *traces, const struct trace_interval *found[SLOWEST_CNT])
{
	size_t cnt = 0;

	for (size_t i = 0; i < traces->intervals.cnt; i++) {
		const struct trace_interval *interval = &traces->intervals.items[i];
		uint64_t ns = interval->base.end_ts - interval->base.begin_ts;
		size_t at = cnt;

		while (at && ns > found[at - 1]->base.end_ts - found[at - 1]->base.begin_ts)
			at--;
		if (at == SLOWEST_CNT)
			continue;
		cnt += cnt < SLOWEST_CNT;
		memmove(&found[at + 1], &found[at], (cnt - at - 1) * sizeof(*found));
		found[at] = interval;
	}
	return cnt;
}

/* Those that are wanted, one after the other: how many, or -errno. */
static ssize_t tell_wanted(const struct traces *traces, const struct samples *samples, const struct wanted *wanted,
			   const struct view_opts *view)
{
	const struct trace_interval *slowest[SLOWEST_CNT];
	size_t cnt = wanted->slowest ? find_slowest(traces, slowest) : traces->sessions.cnt;
	ssize_t told = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct trace_interval *interval =
			wanted->slowest ? slowest[i] : traces_interval(traces, &traces->sessions.items[i], wanted->sid);
		int err;

		if (!interval)
			continue;
		if (told++)
			putchar('\n');
		err = tell(traces, samples, interval, view);
		if (err)
			return err;
	}
	return told;
}

/* An exit code. */
static int explain(const struct traces *traces, const struct samples *samples, const struct wanted *wanted,
		   const char *where, const struct view_opts *view)
{
	ssize_t told = tell_wanted(traces, samples, wanted, view);

	if (told > 0)
		return EXIT_DONE;
	if (told < 0)
		log_error("cannot explain '%s': %s", where, strerror((int)-told));
	else if (wanted->slowest)
		log_error("'%s' has no request", where);
	else
		log_error("there is no interval with sid %llu in '%s', or it was not kept: whylate explain %s tells "
			  "the slowest",
			  (unsigned long long)wanted->sid, where, where);
	return EXIT_FAILED;
}

static int explain_run(const char *const *paths, size_t path_cnt, const struct wanted *wanted,
		       const struct view_opts *view)
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
			code = explain(&traces, &samples, wanted, paths[0], view);
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

/* The last word is the SID where there is a word before it: an exit code. */
static int take_sid(struct wanted *wanted, int *argc, char **argv)
{
	const char *last = argv[*argc - 1];

	wanted->slowest = *argc - optind == 1 || !parse_sid(last, &wanted->sid);
	if (!wanted->slowest)
		--*argc;
	else if (*argc - optind > 1 && access(last, F_OK))
		return usage_error("explain", "'%s' is neither a recording nor a SID, a number, decimal or 0x…", last);
	return EXIT_DONE;
}

int cmd_explain(int argc, char **argv)
{
	struct explain_options options = {0};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	struct wanted wanted = {0};
	struct view_opts view;
	int code = OPTIONS_TAKE("explain", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	view = view_opts_stdout(options.all ? 0 : 1);
	if (usage_recording("explain", argc) || take_sid(&wanted, &argc, argv))
		return EXIT_USAGE;
	return explain_run((const char *const *)argv + optind, (size_t)(argc - optind), &wanted, &view);
}
