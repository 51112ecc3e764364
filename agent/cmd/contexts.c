// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/contexts.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "shard/open.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate contexts DIR|SHARD… [--type NAME] [--tail p99] [--top 10] [--json|--folded]\n"
	"Which types of requests take the program's time, how they were handed on, and which delay which.\n"
	"      --type NAME   only these (tcp:80, 'GET /', a glob)\n"
	"      --tail PCT    which requests count as late (default p99)\n"
	"      --top N       lines per list (default 10; all)\n"
	"      --json        one JSON object, schema whylate.contexts/1\n"
	"      --folded      the call paths for flame graphs, type first\n"
	"Record with --mode trace for hand-offs and who delays whom, with --stacks for call paths.\n";

enum form { FORM_TEXT, FORM_JSON, FORM_FOLDED };

struct contexts_options {
	struct dataset_filter filter;
	double tail;
	struct view_opts view;
	enum form form;
};

static int print(const struct contexts *contexts, const struct contexts_options *options)
{
	int err = options->form == FORM_JSON     ? view_contexts_json(stdout, contexts)
		  : options->form == FORM_FOLDED ? view_contexts_folded(stdout, contexts)
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
	struct shard_reader *reader = shards_open(names, cnt);
	struct dataset dataset;
	int code = EXIT_FAILED, err;

	if (!reader)
		return EXIT_FAILED;
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
	shard_reader__free(reader);
	return code;
}

int cmd_contexts(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"type", required_argument, NULL, 'T'},
		{"tail", required_argument, NULL, 't'},
		{"top", required_argument, NULL, 'n'},
		{"json", no_argument, NULL, 'j'},
		{"folded", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct contexts_options options = {
		.filter = {.without_events = true},
		.tail = 0.99,
		.view = {.top = 10, .colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")},
	};
	int option;

	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (option) {
		case 'T':
			options.filter.type = optarg;
			break;
		case 't':
			if (units_percentile(optarg, &options.tail))
				return usage_error("contexts",
						   "--tail '%s' is not understood: it wants something like p99",
						   optarg);
			break;
		case 'n':
			if (usage_top("contexts", optarg, &options.view.top))
				return EXIT_USAGE;
			break;
		case 'j':
			options.form = FORM_JSON;
			break;
		case 'f':
			options.form = FORM_FOLDED;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			return option_error("contexts", option, argv);
		}
	}
	if (optind >= argc)
		return usage_error("contexts", "which recording? Name a directory or shards");
	return run(&options, (const char *const *)argv + optind, (size_t)(argc - optind));
}
