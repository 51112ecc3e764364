// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "base/privilege.h"
#include "base/units.h"
#include "cmd/analyse.h"
#include "cmd/cmd.h"
#include "cmd/page_file.h"
#include "cmd/record_options.h"
#include "cmd/report_options.h"
#include "cmd/scratch.h"
#include "cmd/target_options.h"
#include "rounds/answer.h"
#include "rounds/rounds.h"
#include "session/session.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char record_help[] =
	"Usage: whylate record TARGET [-s SYMBOLS] [-o DIR] [-d 30s] [--rate 100%] [--tail p99] [--budget 3%]\n"
	"                      [--stream URL]\n"
	"Records the requests of a running process into shards, for `whylate report`.\n";

static const char diagnose_help[] =
	"Usage: whylate diagnose TARGET [-s SYMBOLS] [-d 30s] [--rounds N] [--interactive] [--json]\n"
	"                        [--html FILE] [--top 10] [--type NAME]\n"
	"Records a running process and ranks the roots of its late requests, in one pass that ends when the order of\n"
	"the first two is certain, after at most 30 s.\n";

static const char diagnose_options_help[] =
	"      --rounds N         probe functions in so many rounds, without the chain of blockers: counts and exact\n"
	"                         times (default 0: none)\n"
	"      --interactive      ask which function to open next, after each round\n"
	"      --factors RULE     how functions are chosen: k=3,d=5%,e=2,m=95% (man page: FACTORS)\n"
	"      --understood FUNCTION   take its time out of every request, and rank what is left; repeatable\n"
	"      --json             one JSON object, schema whylate.report/1\n"
	"      --html FILE        write a page for a browser there as well (-: to stdout, instead of the text)\n"
	"      --top N            lines per list (default 10; all)\n"
	"      --type NAME        only intervals of this type\n";

#define OPTIONS_MAX    64
#define OPT_ROUNDS     2000
#define OPT_JSON       2001
#define OPT_TOP        2002
#define OPT_TYPE       2003
#define OPT_ASK        2004
#define OPT_FACTORS    2005
#define OPT_UNDERSTOOD 2006
#define OPT_HTML       2007
#define ROUNDS         3 /* of --interactive */
#define NOT_GIVEN      UINT32_MAX
#define DURATION_NS    30000000000ULL /* without -d: at most */
#define STACKS_HZ      499
/* Recording and analysis are in one process. */
#define MEMORY         (20 << 20)
#define BASELINE_PER_S 500
#define ROUNDS_MAX     100

/* record's options, then the command's own, then the end mark. */
static void join_options(struct option *all, const struct option *own, size_t own_cnt)
{
	memcpy(all, record_long_options, record_long_option_cnt * sizeof(*all));
	memcpy(all + record_long_option_cnt, own, own_cnt * sizeof(*all));
	memset(all + record_long_option_cnt + own_cnt, 0, sizeof(*all));
}

static int check_complete(const struct record_options *options, const char *command, int argc, char **argv)
{
	if (optind < argc)
		return usage_error(command, "'%s' is one argument too many", argv[optind]);
	if (options->duty > 0 && options->duty < options->rate)
		return usage_error(command,
				   "--duty %g%% of the time is too little to select --rate %g%% of the intervals",
				   100 * options->duty, 100 * options->rate);
	return record_options_check(options, command) ? EXIT_USAGE : EXIT_DONE;
}

/* One option of the target, or of those that record and diagnose share: 0, or a negative error after a line. */
static int take_shared(struct record_options *options, struct target_query *query, const char *command, int option)
{
	int err = target_options_take(query, command, option, optarg);

	return err == -ENOENT ? record_options_take(options, command, option, optarg) : err;
}

/* Finds the processes. An exit code. */
static int find_target(struct record_options *options, const struct target_query *query, struct target_set *set)
{
	if (privilege_check() || target_resolve(query, set))
		return EXIT_FAILED;
	if (!options->quiet)
		target_set_say(set);
	options->target = set;
	options->pid = set->pids.items[0];
	return EXIT_DONE;
}

int cmd_record(int argc, char **argv)
{
	static const struct option own[] = {{"help", no_argument, NULL, 'h'}};
	struct option all[OPTIONS_MAX];
	struct record_options options;
	struct recording_result result;
	struct target_query query = {0};
	struct target_set set = {0};
	int option, code;

	record_options_init(&options);
	join_options(all, own, 1);
	while ((option = getopt_long(argc, argv, ":" RECORD_SHORT_OPTIONS "h", all, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s", record_help, target_options_help, record_options_help);
			return EXIT_DONE;
		}
		if (option == '?' || option == ':')
			return option_error("record", option, argv);
		if (take_shared(&options, &query, "record", option))
			return EXIT_USAGE;
	}
	code = check_complete(&options, "record", argc, argv);
	if (!code)
		code = target_options_check(&query, "record");
	if (!code)
		code = find_target(&options, &query, &set);
	if (!code) {
		options.confine = true;
		code = recording_run(&options, &result);
	}
	target_set_free(&set);
	target_options_free(&query);
	return code;
}

static int take_own(struct analyse_options *analyse, struct rounds_options *rounds, int option, const char *arg)
{
	uint64_t number = 0;

	switch (option) {
	case OPT_ROUNDS:
		if (strcmp(arg, "0") && units_number(arg, ROUNDS_MAX, &number))
			return usage_error("diagnose", "--rounds '%s' is not understood: it wants a number up to %d",
					   arg, ROUNDS_MAX);
		rounds->rounds = (uint32_t)number;
		return 0;
	case OPT_ASK:
		rounds->interactive = true;
		return 0;
	case OPT_FACTORS:
		return report_options_factors(analyse, "diagnose", arg);
	case OPT_UNDERSTOOD:
		return report_options_understood(analyse, "diagnose", arg);
	case OPT_JSON:
		analyse->json = true;
		return 0;
	case OPT_HTML:
		analyse->html = arg;
		return 0;
	case OPT_TOP:
		return usage_top("diagnose", arg, &analyse->top);
	case OPT_TYPE:
		analyse->type = arg;
		return 0;
	}
	return -ENOENT;
}

/* Functions are probed while hooks are attached, which is then all the time. */
static int check_rounds(struct record_options *options, struct analyse_options *analyse, struct rounds_options *rounds)
{
	if (!rounds->rounds)
		return rounds->interactive ? usage_error("diagnose", "--interactive goes with rounds") : EXIT_DONE;
	if (options->duty > 0 && options->duty < 1)
		return usage_error("diagnose", "--rounds needs hooks that are attached all the time: --duty goes "
					       "without it");
	options->duty = 1;
	rounds->rule = analyse->rule;
	rounds->understood = &analyse->understood;
	rounds->tail = options->tail > 0 ? options->tail : analyse->tail;
	options->client = &rounds_client;
	options->client_options = rounds;
	return EXIT_DONE;
}

/* One pass that follows the chain of blockers, unless rounds or the mode ask for something else. */
static void choose_mode(struct record_options *options, struct rounds_options *rounds)
{
	if (rounds->rounds == NOT_GIVEN)
		rounds->rounds = rounds->interactive ? ROUNDS : 0;
	if (!options->mode_given)
		options->trace = !rounds->rounds;
}

/* One pass where chains are recorded and no functions are probed: samples, and without -d until the answer is certain.
 */
static void set_defaults(struct record_options *options, const struct analyse_options *analyse,
			 const struct rounds_options *rounds, struct answer_options *answer)
{
	bool by_answer = !options->duration_ns && !rounds->rounds;

	if (!options->duration_ns)
		options->duration_ns = DURATION_NS;
	if (rounds->rounds || !options->trace)
		return;
	if (!options->stacks_hz)
		options->stacks_hz = STACKS_HZ;
	if (!by_answer)
		return;
	*answer = (struct answer_options){
		.tail = options->tail > 0.5 ? options->tail : analyse->tail,
		.type = analyse->type,
	};
	options->client = &answer_client;
	options->client_options = answer;
}

static int diagnose(struct record_options *options, struct analyse_options *analyse)
{
	struct scratch scratch = {.fd = -1};
	bool keep = options->dir != NULL;
	struct recording_result result;
	const char *path;
	int code, report_code, err;

	if (!keep) {
		err = scratch__make(&scratch);
		if (err) {
			log_error("cannot make a temporary directory in " SCRATCH_PLACE
				  ": %s (-o DIR names another place)",
				  strerror(-err));
			return EXIT_FAILED;
		}
		options->dir = scratch.path;
	}
	if (options->tail > 0)
		analyse->tail = options->tail;
	analyse->max_loss = 1;
	code = recording_run(options, &result);
	if (code == EXIT_DONE || code == EXIT_LIMITS) {
		malloc_trim(0); /* the recording's memory, before the report's is taken */
		path = result.dir;
		report_code = analyse_run(analyse, &path, 1);
		if (report_code)
			code = report_code;
	}
	if (!keep)
		scratch__remove(&scratch);
	return code;
}

int cmd_diagnose(int argc, char **argv)
{
	static const struct option own[] = {
		{"help", no_argument, NULL, 'h'},
		{"rounds", required_argument, NULL, OPT_ROUNDS},
		{"json", no_argument, NULL, OPT_JSON},
		{"html", required_argument, NULL, OPT_HTML},
		{"top", required_argument, NULL, OPT_TOP},
		{"type", required_argument, NULL, OPT_TYPE},
		{"interactive", no_argument, NULL, OPT_ASK},
		{"factors", required_argument, NULL, OPT_FACTORS},
		{"understood", required_argument, NULL, OPT_UNDERSTOOD},
	};
	struct rounds_options rounds = {.rounds = NOT_GIVEN};
	struct answer_options answer;
	struct option all[OPTIONS_MAX];
	struct record_options options;
	struct analyse_options analyse;
	struct target_query query = {0};
	struct target_set set = {0};
	int option, code;

	record_options_init(&options);
	options.memory = MEMORY;
	options.baseline_per_s = BASELINE_PER_S;
	report_options_init(&analyse);
	join_options(all, own, sizeof(own) / sizeof(own[0]));
	while ((option = getopt_long(argc, argv, ":" RECORD_SHORT_OPTIONS "h", all, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s%s", diagnose_help, target_options_help, record_options_help,
			       diagnose_options_help);
			return EXIT_DONE;
		}
		if (option == '?' || option == ':')
			return option_error("diagnose", option, argv);
		code = take_own(&analyse, &rounds, option, optarg);
		if (code == -ENOENT)
			code = take_shared(&options, &query, "diagnose", option);
		if (code)
			return EXIT_USAGE;
	}
	code = check_complete(&options, "diagnose", argc, argv);
	if (!code && analyse.json && analyse.html && page_file_is_stdout(analyse.html))
		code = usage_error("diagnose", "--json and --html - both write to stdout");
	choose_mode(&options, &rounds);
	if (!code)
		code = check_rounds(&options, &analyse, &rounds);
	if (!code)
		set_defaults(&options, &analyse, &rounds, &answer);
	/* A script is not asked. */
	if (!code && !query.kind && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		code = target_options_ask(&query) ? EXIT_FAILED : EXIT_DONE;
	if (!code)
		code = target_options_check(&query, "diagnose");
	if (!code)
		code = find_target(&options, &query, &set);
	if (!code)
		code = diagnose(&options, &analyse);
	target_set_free(&set);
	target_options_free(&query);
	factor_names_free(&analyse.understood);
	return code;
}
