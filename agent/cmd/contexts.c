// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/contexts.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "shard/open.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate contexts DIR|SHARD… [--type NAME] [--tail p99] [--top 10] [--json|--folded|--requests]\n"
	"Which types of requests take the program's time, how they were handed on, and which delay which.\n"
	"      --type NAME   only these (tcp:80, 'GET /', a glob)\n"
	"      --tail PCT    which requests count as late (default p99)\n"
	"      --top N       lines per list (default 10; all)\n"
	"      --json        one JSON object, schema whylate.contexts/1\n"
	"      --folded      the call paths for flame graphs, type and context first\n"
	"      --requests    every request, and which one asked for it: a JSON object a line\n"
	"Record with --mode trace for hand-offs and who delays whom, with --stacks for call paths.\n";

struct contexts_options {
	struct dataset_filter filter;
	double tail;
	struct view_opts view;
	bool json, folded, requests;
};

static int print(const struct contexts *contexts, const struct contexts_options *options)
{
	int err;

	progress_end();
	err = options->requests ? view_contexts_requests(stdout, contexts)
	      : options->folded ? view_contexts_folded(stdout, contexts)
	      : options->json   ? view_contexts_json(stdout, contexts)
				: view_contexts_text(stdout, contexts, &options->view);

	if (err)
		log_error("cannot write: %s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* What the dataset and, where there is detail, its paths say: an exit code. */
static int tell(struct dataset *dataset, struct shard_reader *reader, const struct contexts_options *options)
{
	struct contexts contexts = {0};
	struct paths paths = {0};
	struct traces traces;
	int found = traces_load(&traces, reader), err = found < 0 ? found : 0, code = EXIT_FAILED;

	if (!err && found)
		err = paths_make(&paths, &traces, dataset, NULL);
	if (!err)
		err = contexts_make(&contexts, dataset, found ? &paths : NULL, reader, options->tail);
	if (err)
		log_error("the analysis failed: %s", strerror(-err));
	else
		code = print(&contexts, options);
	contexts_free(&contexts);
	paths_free(&paths);
	if (found > 0)
		traces_free(&traces);
	return code;
}

static int run(const struct contexts_options *options, const char *const *names, size_t cnt)
{
	const struct confine_reader needs = {.paths = names, .path_cnt = cnt};
	struct shard_reader *reader;
	struct dataset dataset;
	int code = EXIT_FAILED, err;

	confine_reader(&needs);
	reader = shards_open(names, cnt);
	if (!reader)
		return EXIT_FAILED;
	progress_begin("reading");
	err = dataset_load(&dataset, reader, &options->filter);
	if (err) {
		log_error("'%s' cannot be analysed: %s", names[0],
			  err == -ENOENT ? "there is no table of intervals in it" : strerror(-err));
	} else {
		if (dataset.row_cnt)
			code = tell(&dataset, reader, options);
		else
			log_error("'%s' has no request%s%s%s", names[0], options->filter.type ? " of type '" : "",
				  options->filter.type ? options->filter.type : "", options->filter.type ? "'" : "");
		dataset_free(&dataset);
	}
	progress_end();
	shard_reader__free(reader);
	return code;
}

#define O struct contexts_options
static const struct option_row rows[] = {
	OPTION_TEXT("type", 0, O, filter.type),
	OPTION_PERCENTILE("tail", O, tail),
	OPTION_TOP(O, view.top),
	OPTION_FLAG("json", 0, O, json),
	OPTION_FLAG("folded", 0, O, folded),
	OPTION_FLAG("requests", 0, O, requests),
};
#undef O

int cmd_contexts(int argc, char **argv)
{
	struct contexts_options options = {
		.filter = {.without_events = true},
		.tail = 0.99,
		.view = view_opts_stdout(10),
	};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code = OPTIONS_TAKE("contexts", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	if (usage_recording("contexts", argc))
		return EXIT_USAGE;
	return run(&options, (const char *const *)argv + optind, (size_t)(argc - optind));
}
