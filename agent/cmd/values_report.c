// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate values report`: which function is costly because a variable of it differs (vProf section 5). */
#include "analysis/values.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/report_options.h"
#include "cmd/values.h"
#include "shard/open.h"
#include "view/analyse.h"
#include "view/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate values report DIR [--tail p99] [--type NAME] [--top 10] [--json]\n"
	"       whylate values report --normal DIR… --slow DIR… [--top 10] [--json]\n"
	"Ranks functions by how much they cost and how much their variables differ, in recordings with --values: late\n"
	"requests against typical ones, or slow recordings against normal ones.\n"
	"      --normal DIR…   recordings in which all is well\n"
	"      --slow DIR…     recordings to be explained\n"
	"      --tail PCT      which requests count as late (default p99)\n"
	"      --type NAME     only intervals of this type\n"
	"      --top N         lines (default 10; all)\n"
	"      --json          schema whylate.values/1\n";

struct recording_paths {
	const char **items; /* the normal ones first */
	size_t cnt, slow_from;
};

struct values_report_options {
	struct analyse_options analyse;
	struct recording_paths paths, slow;
	bool groups;
	int argc;
	char **argv;
};

static int print(const struct value_report *report, const struct analyse_options *options)
{
	const struct view_opts view = view_opts_stdout(options->top);
	int err;

	progress_end();
	err = options->json ? view_values_json(stdout, report) : view_values_text(stdout, report, &view);
	if (err)
		log_error("cannot write the report: %s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int say_none(void)
{
	log_error("there are no values in these recordings: record with --values a program that has debugging "
		  "information");
	return EXIT_FAILED;
}

/* --- one recording ------------------------------------------------------------------------------------------------ */

static int report_one(struct shard_reader *reader, const struct analyse_options *options)
{
	const struct findings_opts opts = {
		.filter = {.type = options->type}, .tail = options->tail, .rule = options->rule};
	struct findings *findings = calloc(1, sizeof(*findings));
	int err = findings ? findings_make(findings, reader, &opts) : -ENOMEM, code;

	if (err) {
		log_error("these shards cannot be analysed: %s",
			  err == -ENOENT ? "there is no table of intervals in them" : strerror(-err));
		free(findings);
		return EXIT_FAILED;
	}
	code = findings->report.values ? print(findings->report.values, options) : say_none();
	findings_free(findings);
	free(findings);
	return code;
}

/* --- two groups --------------------------------------------------------------------------------------------------- */

static int report_groups(const struct recording_paths *paths, const struct analyse_options *options)
{
	struct arena *arena = arena__new();
	struct value_report *report = NULL;
	int found = arena ? values_compare_paths(&report, paths->items, paths->cnt, paths->slow_from, arena) : -ENOMEM,
	    code = EXIT_FAILED;

	if (found > 0)
		code = print(report, options);
	else if (!found)
		log_error("normal or slow recordings have no values: record both with --values a program that has "
			  "debugging information");
	else if (found != -ENOENT)
		log_error("the values cannot be compared: %s", strerror(-found));
	arena__free(arena);
	return code;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

/* Words after --normal and --slow, up to the next option, are recordings of that group. */
static int take_group(int is_slow, void *ctx, const char *command, const char *arg)
{
	struct values_report_options *options = ctx;
	struct recording_paths *paths = is_slow ? &options->slow : &options->paths;

	(void)command;
	options->groups = true;
	paths->items[paths->cnt++] = arg;
	while (optind < options->argc && *options->argv[optind] != '-')
		paths->items[paths->cnt++] = options->argv[optind++];
	return 0;
}

#define GROUP(name, is_slow) \
	OPTION_ROW(name, 0, OPTION_IS_CALL, .take_tagged = take_group, .has_arg = required_argument, .tag = is_slow)
#define O struct values_report_options
static const struct option_row rows[] = {
	GROUP("normal", false),
	GROUP("slow", true),
	OPTION_PERCENTILE("tail", O, analyse.tail),
	OPTION_TEXT("type", 0, O, analyse.type),
	OPTION_TOP(O, analyse.top),
	OPTION_FLAG("json", 0, O, analyse.json),
};
#undef O

static int run(struct recording_paths *paths, struct recording_paths *slow, bool groups,
	       const struct analyse_options *options, const char *command)
{
	struct confine_reader needs;
	struct shard_reader *reader;
	int code;

	if (groups && (!paths->cnt || !slow->cnt))
		return usage_error(command, "--normal and --slow go together, each with a recording or more");
	if (!paths->cnt)
		return usage_error(command, "which recording? Name a directory");
	paths->slow_from = paths->cnt;
	for (size_t i = 0; i < slow->cnt; i++)
		paths->items[paths->cnt++] = slow->items[i];
	needs = (struct confine_reader){.paths = paths->items, .path_cnt = paths->cnt};
	confine_reader(&needs);
	progress_begin("reading");
	reader = groups ? NULL : shards_open(paths->items, paths->cnt);
	code = groups ? report_groups(paths, options) : reader ? report_one(reader, options) : EXIT_FAILED;
	progress_end();
	shard_reader__free(reader);
	return code;
}

int values_report_run(int argc, char **argv, const char *command)
{
	struct values_report_options options = {
		.paths = {.items = calloc((size_t)argc + 1, sizeof(char *))},
		.slow = {.items = calloc((size_t)argc + 1, sizeof(char *))},
		.argc = argc,
		.argv = argv,
	};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code = EXIT_FAILED;

	report_options_init(&options.analyse);
	if (options.paths.items && options.slow.items)
		code = OPTIONS_TAKE(command, groups, argc, argv);
	while (code == OPTIONS_GO_ON && optind < argc)
		options.paths.items[options.paths.cnt++] = argv[optind++];
	if (code == OPTIONS_GO_ON)
		code = run(&options.paths, &options.slow, options.groups, &options.analyse, command);
	free(options.paths.items);
	free(options.slow.items);
	return code;
}
