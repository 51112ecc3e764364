// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/confine.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/report_options.h"
#include "view/analyse.h"
#include "view/page_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void report_options_init(struct analyse_options *options)
{
	*options = (struct analyse_options){.tail = 0.99, .top = 10, .max_loss = 0.01, .rule = FACTOR_RULE_DEFAULT};
	options->rule.understood = &options->understood;
}

static int take_rule(struct factor_rule *rule, const char *word)
{
	const char *value = word + 2;
	uint64_t number;

	if (!*word || word[1] != '=')
		return -EINVAL;
	switch (*word) {
	case 'k':
	case 'e':
		if (units_number(value, *word == 'k' ? 1000 : 3, &number))
			return -EINVAL;
		*(*word == 'k' ? &rule->k : &rule->e) = (uint32_t)number;
		return 0;
	case 'd':
	case 'm':
		return units_share(value, *word == 'd' ? &rule->d : &rule->m);
	}
	return -EINVAL;
}

int report_options_take_factors(void *ctx, const char *command, const char *arg)
{
	struct analyse_options *options = ctx;
	char words[128], *rest = words, *word;

	if (strlen(arg) >= sizeof(words))
		return usage_error(command, "--factors '%.40s…' is too long", arg);
	strcpy(words, arg);
	while ((word = strsep(&rest, ",")))
		if (take_rule(&options->rule, word))
			return usage_error(command,
					   "--factors '%s' is not understood: it wants something like k=3,d=5%%,e=2, "
					   "and e is 1, 2 or 3",
					   arg);
	return 0;
}

int report_options_take_understood(void *ctx, const char *command, const char *arg)
{
	struct analyse_options *options = ctx;

	if (!*arg)
		return usage_error(command, "--understood '' names no function");
	if (!factor_names_add(&options->understood, arg))
		return 0;
	log_error("out of memory");
	return EXIT_FAILED;
}

int report_options_check(const struct analyse_options *options, const char *command)
{
	if (options->json && options->html && page_file_is_stdout(options->html))
		return usage_error(command, "--json and --html - both write to stdout");
	return EXIT_DONE;
}

static const char help[] =
	"Usage: whylate report DIR|SHARD… [--json] [--html FILE] [--tail p99] [--type NAME] [--top 10]\n"
	"                      [--host GLOB] [--since 1h] [--until 2026-11-21T12:00]\n"
	"Ranks what made requests late, from recorded shards.  Needs no privilege.\n"
	"      --json        one JSON object, schema whylate.report/1\n"
	"      --html FILE   write a page for a browser there as well (-: to stdout, instead of the text)\n"
	"      --tail PCT    which requests count as late (default p99)\n"
	"      --type NAME   only intervals of this type (tcp:6379, 'GET /', a function, …; a glob)\n"
	"      --host GLOB   only hosts that the pattern fits, of a collector's store\n"
	"      --since TIME, --until TIME   only requests that began then: so long ago (1h), or in UTC\n"
	"      --factors RULE   how functions are chosen: k=3,d=5%,e=2,m=95% (man page: FACTORS)\n"
	"      --understood FUNCTION   take its time out of every request, and rank what is left; repeatable\n"
	"      --segments LENGTH   the tail of each segment of that length (10m), which stand out, when it changed\n"
	"      --top N       lines per list (default 10; all)\n"
	"      --max-loss SHARE   exit with 3 if more records were lost (default 1%)\n";

#define O struct analyse_options
static const struct option_row rows[] = {
	OPTION_FLAG("json", 0, O, json),
	OPTION_TEXT("html", 0, O, html),
	OPTION_PERCENTILE("tail", O, tail),
	OPTION_TEXT("type", 0, O, type),
	OPTION_TEXT("host", 0, O, host),
	OPTION_TIME("since", O, since_wall_ns),
	OPTION_TIME("until", O, until_wall_ns),
	OPTION_CALL("factors", report_options_take_factors, .has_arg = required_argument),
	OPTION_CALL("understood", report_options_take_understood, .has_arg = required_argument),
	OPTION_DURATION("segments", 0, O, segments_ns, .example = "10m"),
	OPTION_TOP(O, top),
	OPTION_SHARE("max-loss", 0, O, max_loss, .example = "1%", .zero = true),
};
#undef O

int cmd_report(int argc, char **argv)
{
	struct analyse_options options;
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	struct confine_reader needs;
	int code;

	report_options_init(&options);
	code = OPTIONS_TAKE("report", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	if (options.until_wall_ns && options.since_wall_ns >= options.until_wall_ns)
		return usage_error("report", "--until lies before --since");
	if (report_options_check(&options, "report"))
		return EXIT_USAGE;
	if (options.segments_ns && options.html)
		return usage_error("report", "--segments goes without --html");
	if (usage_recording("report", argc))
		return EXIT_USAGE;
	needs = (struct confine_reader){.paths = (const char *const *)argv + optind,
					.path_cnt = (size_t)(argc - optind),
					.out_path = options.html};
	confine_reader(&needs);
	code = analyse_run(&options, needs.paths, needs.path_cnt);
	factor_names_free(&options.understood);
	return code;
}
