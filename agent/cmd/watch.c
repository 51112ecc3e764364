// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch.h"

#include "base/privilege.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/record_options.h"
#include "cmd/target_options.h"

#include <unistd.h>

static const char help[] =
	"Usage: whylate watch TARGET --when 'p99>20ms for 10s' -o DIR [--every 10m] [--keep 20] [--exec FILE]\n"
	"Stays armed: when the condition is met, the minute before it and the minute after it are kept as a "
	"recording,\n"
	"with a report.  Between events it holds a minute of shards, and --budget is 1% unless given.\n"
	"      --when CONDITION   FIGURE > VALUE [for DURATION] [of TYPE], or with <: mean>5ms, p99>20ms, rate>1000,\n"
	"                         share(100ms)>1% (of requests that took longer); over the last DURATION (10s)\n"
	"      --every DURATION   at most one event in it (default 10m)\n"
	"      --keep N           so many events in DIR; the oldest one is removed for a newer one (default 20)\n"
	"      --exec FILE        a program to run after each event, with the event's directory as its argument and "
	"facts\n"
	"                         in its environment (WHYLATE_…); never by a shell\n"
	"      --user NAME        for reports and that program (default: who called sudo, else nobody)\n";

#define EVERY_NS 600000000000ULL
#define EVENTS   20
#define BUDGET   0.01 /* it stays for weeks */

static int take_when(void *ctx, const char *command, const char *arg)
{
	struct watch_options *watch = ctx;

	watch->when_text = arg;
	return watch_when_parse(&watch->when, arg)
		       ? usage_error(command,
				     "--when '%s' is not understood: it wants something like 'p99>20ms for 10s', "
				     "'rate<100', 'share(100ms)>1%%'",
				     arg)
		       : 0;
}

static int take_keep(void *ctx, const char *command, const char *arg)
{
	struct watch_options *watch = ctx;

	return units_number(arg, 1000, &watch->keep)
		       ? usage_error(command, "--keep '%s' is not understood: it wants a number up to 1000", arg)
		       : 0;
}

static int take_exec(void *ctx, const char *command, const char *arg)
{
	struct watch_options *watch = ctx;

	watch->exec = arg;
	return arg[0] != '/' || access(arg, X_OK)
		       ? usage_error(command, "--exec '%s': it wants the whole path of a program", arg)
		       : 0;
}

static const struct option_row rows[] = {
	OPTION_CALL("when", take_when, .has_arg = required_argument),
	OPTION_DURATION("every", 0, struct watch_options, every_ns, .example = "10m"),
	OPTION_CALL("keep", take_keep, .has_arg = required_argument),
	OPTION_CALL("exec", take_exec, .has_arg = required_argument),
	OPTION_TEXT("user", 0, struct watch_options, user),
};

static int check(const struct watch_options *watch, int argc, char **argv)
{
	if (usage_no_words("watch", argc, argv))
		return EXIT_USAGE;
	if (!watch->when_text)
		return usage_error("watch", "when? --when wants something like 'p99>20ms for 10s'");
	if (!watch->record.dir)
		return usage_error("watch", "where to? -o DIR is for the events");
	if (watch->record.stream.url || watch->record.duration_ns)
		return usage_error("watch", "it stays armed, and streams nothing: --stream and -d are for record");
	return record_options_check(&watch->record, "watch");
}

int cmd_watch(int argc, char **argv)
{
	static struct watch_options watch = {.every_ns = EVERY_NS, .keep = EVENTS};
	struct target_query query = {0};
	struct target_set set = {0};
	const struct option_group groups[] = {
		OPTION_GROUP(rows, &watch, help),
		target_options_group(&query),
		record_options_group(&watch.record),
	};
	int code;

	record_options_init(&watch.record);
	watch.record.budget = BUDGET;
	watch.record.armed = true;
	code = OPTIONS_TAKE("watch", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	code = check(&watch, argc, argv);
	if (!code)
		code = target_options_check(&query, "watch");
	if (!code && (privilege_check() || target_resolve(&query, &set)))
		code = EXIT_FAILED;
	if (!code) {
		target_set_say(&set);
		watch.record.target = &set;
		watch.record.pid = set.pids.items[0];
		code = watch_run(&watch);
	}
	target_set_free(&set);
	target_options_free(&query);
	return code;
}
