// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/confine.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/record_options.h"
#include "cmd/report_options.h"
#include "cmd/target_options.h"
#include "rounds/answer.h"
#include "rounds/queues_list.h"
#include "rounds/rounds.h"
#include "session/scratch.h"
#include "session/session.h"
#include "view/analyse.h"

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
	"the first two is certain, at the latest so that the report comes after 15 s.\n";

static const char diagnose_options_help[] =
	"      --queues           look for queues in shared memory first, for 2 s, and follow requests through them\n"
	"      --rounds N         probe functions in so many rounds, without the chain of blockers: counts and exact\n"
	"                         times (default 0: none)\n"
	"      --interactive      ask which function to open next, after each round\n"
	"      --factors RULE     how functions are chosen: k=3,d=5%,e=2,m=95% (man page: FACTORS)\n"
	"      --understood FUNCTION   take its time out of every request, and rank what is left; repeatable\n"
	"      --json             one JSON object, schema whylate.report/1\n"
	"      --html FILE        write a page for a browser there as well (-: to stdout, instead of the text)\n"
	"      --top N            lines per list (default 10; all)\n"
	"      --type NAME        only intervals of this type\n";

#define ROUNDS      3 /* of --interactive */
#define NOT_GIVEN   UINT32_MAX
#define DURATION_NS 30000000000ULL /* without -d, where nothing else ends it */
#define STACKS_HZ   499
/* Recording and analysis are in one process. */
#define MEMORY         (20 << 20)
#define BASELINE_PER_S 500
#define ROUNDS_MAX     100
#define QUEUES_NS      2000000000ULL

static int check_complete(const struct record_options *options, const char *command, int argc, char **argv)
{
	if (usage_no_words(command, argc, argv))
		return EXIT_USAGE;
	if (options->duty > 0 && options->duty < options->rate)
		return usage_error(command,
				   "--duty %g%% of the time is too little to select --rate %g%% of the intervals",
				   100 * options->duty, 100 * options->rate);
	return record_options_check(options, command);
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
	struct record_options options;
	struct recording_result result;
	struct target_query query = {0};
	struct target_set set = {0};
	const struct option_group groups[] = {
		{.help = record_help},
		target_options_group(&query),
		record_options_group(&options),
	};
	int code;

	record_options_init(&options);
	code = OPTIONS_TAKE("record", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
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

static int take_rounds(void *ctx, const char *command, const char *arg)
{
	struct rounds_options *rounds = ctx;
	uint64_t number = 0;

	if (strcmp(arg, "0") && units_number(arg, ROUNDS_MAX, &number))
		return usage_error(command, "--rounds '%s' is not understood: it wants a number up to %d", arg,
				   ROUNDS_MAX);
	rounds->rounds = (uint32_t)number;
	return 0;
}

static const struct option_row rounds_rows[] = {
	OPTION_CALL("rounds", take_rounds, .has_arg = required_argument),
	OPTION_FLAG("interactive", 0, struct rounds_options, interactive),
};

struct queues_options {
	bool search;
	int list_fd;
	char list[32]; /* path of the symbol list */
};

static const struct option_row queues_rows[] = {
	OPTION_FLAG("queues", 0, struct queues_options, search),
};

#define O struct analyse_options
static const struct option_row diagnose_rows[] = {
	OPTION_FLAG("json", 0, O, json),
	OPTION_TEXT("html", 0, O, html),
	OPTION_TOP(O, top),
	OPTION_TEXT("type", 0, O, type),
	OPTION_CALL("factors", report_options_take_factors, .has_arg = required_argument),
	OPTION_CALL("understood", report_options_take_understood, .has_arg = required_argument),
};
#undef O

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

/* The report of what was recorded reads shards, and nothing else any more. */
static void confine_diagnosis(const char *dir, const char *out_path, const char *scratch)
{
	const struct confine_reader needs = {.paths = &dir, .path_cnt = 1, .out_path = out_path, .scratch = scratch};

	confine_reader(&needs);
}

/* The queues that are found are the symbol list.  An exit code. */
static int find_queues(struct queues_options *queues, struct record_options *options)
{
	const struct suggest_options watched = {
		.target = options->target,
		.children = options->children,
		.btf_path = options->btf_path,
		.duration_ns = QUEUES_NS,
	};
	int cnt;

	if (!queues->search)
		return EXIT_DONE;
	cnt = queues_find_list(options->pid, options->debuginfo_dir, &watched, &queues->list_fd);
	if (cnt < 0)
		return EXIT_FAILED;
	if (!cnt) {
		log_warn("no queue in shared memory was found: whylate probes suggest --queues says what was looked "
			 "at");
		return EXIT_DONE;
	}
	snprintf(queues->list, sizeof(queues->list), "/proc/self/fd/%d", queues->list_fd);
	options->symbols = queues->list;
	options->symbols_name = "queues that were found";
	return EXIT_DONE;
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
	options->confine = true;
	options->output = analyse->html;
	code = recording_run(options, &result);
	if (code == EXIT_DONE || code == EXIT_LIMITS) {
		malloc_trim(0); /* the recording's memory, before the report's is taken */
		path = result.dir;
		confine_diagnosis(path, analyse->html, keep ? NULL : scratch.path);
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
	struct rounds_options rounds = {.rounds = NOT_GIVEN};
	struct queues_options queues = {.list_fd = -1};
	struct answer_options answer;
	struct record_options options;
	struct analyse_options analyse;
	struct target_query query = {0};
	struct target_set set = {0};
	const struct option_group groups[] = {
		{.help = diagnose_help},
		target_options_group(&query),
		record_options_group(&options),
		OPTION_GROUP(rounds_rows, &rounds, NULL),
		OPTION_GROUP(queues_rows, &queues, NULL),
		OPTION_GROUP(diagnose_rows, &analyse, diagnose_options_help),
	};
	int code;

	record_options_init(&options);
	options.memory = MEMORY;
	options.baseline_per_s = BASELINE_PER_S;
	options.brief = true;
	report_options_init(&analyse);
	code = OPTIONS_TAKE("diagnose", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	code = check_complete(&options, "diagnose", argc, argv);
	if (!code)
		code = report_options_check(&analyse, "diagnose");
	if (!code && queues.search && options.symbols)
		code = usage_error("diagnose", "--queues makes the symbol list itself: it goes without -s");
	choose_mode(&options, &rounds);
	if (!code)
		code = check_rounds(&options, &analyse, &rounds);
	if (!code)
		set_defaults(&options, &analyse, &rounds, &answer);
	/* A script is not asked. */
	if (!code && !query.kind && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		code = target_options_ask(&query);
	if (!code)
		code = target_options_check(&query, "diagnose");
	if (!code)
		code = find_target(&options, &query, &set);
	if (!code)
		code = find_queues(&queues, &options);
	if (!code)
		code = diagnose(&options, &analyse);
	if (queues.list_fd >= 0)
		close(queues.list_fd);
	target_set_free(&set);
	target_options_free(&query);
	factor_names_free(&analyse.understood);
	return code;
}
