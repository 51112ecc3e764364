// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate top`: the command line. */
#include "base/privilege.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/record_options.h"
#include "cmd/target_options.h"
#include "live/top_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate top TARGET [INTERVAL [COUNT]]\n"
	"       whylate top DIR|SHARD… [INTERVAL [COUNT]]\n"
	"Live: the roots of late requests with their trend, latencies, where time goes, types; or a recording, "
	"replayed.\n"
	"Keys: ? lists them.  Into a pipe it writes a line each INTERVAL (10s; on a terminal 2s), COUNT of them.\n"
	"      --window LENGTH    how much of the past is looked at (default 60s, at most 10m)\n"
	"      --speed TIMES      of a replay (default 1; into a pipe as fast as it can be read)\n"
	"      --type NAME        only intervals of this type; a glob\n"
	"      --json             into a pipe: one JSON object each INTERVAL, schema whylate.report/1\n";

#define WINDOW_NS     60000000000ULL
#define WINDOW_NS_MAX 600000000000ULL
#define INTERVAL_NS   2000000000ULL /* on a terminal */
#define LINES_NS      10000000000ULL
#define INTERVAL_MIN  500000000ULL
#define TAIL          0.99
/* As of diagnose: the analysis is in a process beside. */
#define STACKS_HZ      499
#define MEMORY         (20 << 20)
#define BASELINE_PER_S 500

volatile sig_atomic_t top_stop_requested;

static void on_stop(int signal)
{
	(void)signal;
	top_stop_requested = 1;
}

struct top_args {
	struct top_options top;
	struct record_options record;
	struct target_query query;
	struct target_set set;
};

static int take_speed(void *ctx, const char *command, const char *arg)
{
	struct top_options *top = ctx;
	char *end;

	top->speed = strtod(arg, &end);
	if (*end == 'x')
		end++;
	return end > arg && !*end && top->speed >= 0.125 && top->speed <= 256
		       ? 0
		       : usage_error(command, "--speed '%s' is not understood: it wants 0.125 to 256", arg);
}

static const struct option_row rows[] = {
	OPTION_DURATION("window", 0, struct top_options, window_ns, .example = "60s, 1s to 10m", .min = 1000000000,
			.max = WINDOW_NS_MAX),
	OPTION_CALL("speed", take_speed, .has_arg = required_argument),
	OPTION_TEXT("type", 0, struct top_options, type),
	OPTION_FLAG("json", 0, struct top_options, json),
};

/* "2s", and in the manner of vmstat "2". */
static int read_interval(const char *arg, uint64_t *ns)
{
	uint64_t seconds;
	int err = units_number(arg, 86400, &seconds) ? units_duration_ns(arg, ns) : 0;

	if (!err && !units_number(arg, 86400, &seconds))
		*ns = seconds * 1000000000;
	return err || *ns < INTERVAL_MIN ? -EINVAL : 0;
}

/* INTERVAL and COUNT come last; what comes before is a recording. */
static int take_rest(struct top_args *args, int cnt, char **rest)
{
	struct top_options *top = &args->top;
	struct stat st;

	top->paths = (const char *const *)rest;
	while (!args->query.kind && (int)top->path_cnt < cnt && !stat(rest[top->path_cnt], &st))
		top->path_cnt++;
	rest += top->path_cnt;
	cnt -= (int)top->path_cnt;
	if (!args->query.kind && !top->path_cnt)
		return cnt ? usage_error("top", "'%s' is no recording, and no process is named (-p PID, --port PORT)",
					 *rest)
			   : usage_error("top", "which process (-p PID, --port PORT), or which recording?");
	if (cnt && read_interval(*rest, &top->interval_ns))
		return usage_error("top", "'%s' is not understood: the interval is something like 2s, 0.5s at least",
				   *rest);
	if (cnt > 1 && units_number(rest[1], 1000000000, &top->count))
		return usage_error("top", "'%s' is not understood: how many intervals?", rest[1]);
	if (cnt > 2)
		return usage_error("top", "'%s' is one argument too many", rest[2]);
	return EXIT_DONE;
}

/* Chains of blockers and stacks, unless the user wants less. */
static int check_live(struct top_args *args)
{
	struct record_options *record = &args->record;

	if (!args->query.kind)
		return EXIT_DONE;
	if (record->stream.url || record->duration_ns || record->dir)
		return usage_error("top", "it keeps nothing: -o, -d and --stream are for record");
	if (!record->mode_given)
		record->trace = true;
	if (record->trace && !record->stacks_hz)
		record->stacks_hz = STACKS_HZ;
	args->top.record = record;
	if (record_options_check(record, "top"))
		return EXIT_USAGE;
	return target_options_check(&args->query, "top");
}

static int find_target(struct top_args *args)
{
	if (!args->top.record)
		return EXIT_DONE;
	if (privilege_check() || target_resolve(&args->query, &args->set))
		return EXIT_FAILED;
	args->record.target = &args->set;
	args->record.pid = args->set.pids.items[0];
	return EXIT_DONE;
}

static int run(struct top_args *args)
{
	const struct sigaction stop = {.sa_handler = on_stop};
	const char *terminal = getenv("TERM");
	bool paints = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0 &&
		      !args->top.json;

	if (!args->top.interval_ns)
		args->top.interval_ns = paints ? INTERVAL_NS : LINES_NS;
	args->top.tail = args->record.tail > 0.5 ? args->record.tail : TAIL;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	return paints ? top_run_screen(&args->top) : top_run_lines(&args->top);
}

int cmd_top(int argc, char **argv)
{
	struct top_args args = {.top = {.window_ns = WINDOW_NS, .speed = 1}};
	const struct option_group groups[] = {
		OPTION_GROUP(rows, &args.top, help),
		target_options_group(&args.query),
		record_options_group(&args.record),
	};
	int code;

	record_options_init(&args.record);
	args.record.memory = MEMORY;
	args.record.baseline_per_s = BASELINE_PER_S;
	code = OPTIONS_TAKE("top", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	/* A replay is of files that the user names. */
	if (!args.query.kind && privilege_as_caller())
		return EXIT_FAILED;
	code = take_rest(&args, argc - optind, argv + optind);
	if (!code)
		code = check_live(&args);
	if (!code)
		code = find_target(&args);
	if (!code)
		code = run(&args);
	target_set_free(&args.set);
	target_options_free(&args.query);
	return code;
}
