// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "base/units.h"
#include "cmd/analyse.h"
#include "cmd/cmd.h"
#include "cmd/page_file.h"
#include "cmd/report_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

int report_options_factors(struct analyse_options *options, const char *command, const char *arg)
{
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

int report_options_understood(struct analyse_options *options, const char *command, const char *arg)
{
	if (!*arg)
		return usage_error(command, "--understood '' names no function");
	if (!factor_names_add(&options->understood, arg))
		return 0;
	log_error("out of memory");
	return EXIT_FAILED;
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

static int take_time(const char *option, const char *arg, uint64_t *wall_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!units_time_ns(arg, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, wall_ns))
		return 0;
	return usage_error("report", "%s '%s' is not understood: it wants something like 1h, or 2026-11-21T12:00 (UTC)",
			   option, arg);
}

int cmd_report(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, 'j'},          {"tail", required_argument, NULL, 't'},
		{"type", required_argument, NULL, 'T'},    {"host", required_argument, NULL, 'H'},
		{"since", required_argument, NULL, 's'},   {"until", required_argument, NULL, 'u'},
		{"top", required_argument, NULL, 'n'},     {"max-loss", required_argument, NULL, 'l'},
		{"factors", required_argument, NULL, 'f'}, {"understood", required_argument, NULL, 'U'},
		{"html", required_argument, NULL, 'M'},    {"segments", required_argument, NULL, 'g'},
		{"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
	};
	struct analyse_options options;
	int option, code;

	report_options_init(&options);
	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (option) {
		case 'j':
			options.json = true;
			break;
		case 'M':
			options.html = optarg;
			break;
		case 'g':
			if (usage_duration("report", "--segments", optarg, "10m", &options.segments_ns))
				return EXIT_USAGE;
			break;
		case 't':
			if (units_percentile(optarg, &options.tail))
				return usage_error(
					"report", "--tail '%s' is not understood: it wants something like p99", optarg);
			break;
		case 'T':
			options.type = optarg;
			break;
		case 'H':
			options.host = optarg;
			break;
		case 's':
			if (take_time("--since", optarg, &options.since_wall_ns))
				return EXIT_USAGE;
			break;
		case 'u':
			if (take_time("--until", optarg, &options.until_wall_ns))
				return EXIT_USAGE;
			break;
		case 'n':
			if (usage_top("report", optarg, &options.top))
				return EXIT_USAGE;
			break;
		case 'f':
			if (report_options_factors(&options, "report", optarg))
				return EXIT_USAGE;
			break;
		case 'U':
			if (report_options_understood(&options, "report", optarg))
				return EXIT_USAGE;
			break;
		case 'l':
			if (strcmp(optarg, "0") && usage_share("report", "--max-loss", optarg, "1%", &options.max_loss))
				return EXIT_USAGE;
			if (!strcmp(optarg, "0"))
				options.max_loss = 0;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			return option_error("report", option, argv);
		}
	}
	if (options.until_wall_ns && options.since_wall_ns >= options.until_wall_ns)
		return usage_error("report", "--until lies before --since");
	if (options.json && options.html && page_file_is_stdout(options.html))
		return usage_error("report", "--json and --html - both write to stdout");
	if (options.segments_ns && options.html)
		return usage_error("report", "--segments goes without --html");
	if (optind >= argc)
		return usage_error("report", "which recording? Name a directory or shards");
	code = analyse_run(&options, (const char *const *)argv + optind, argc - optind);
	factor_names_free(&options.understood);
	return code;
}
