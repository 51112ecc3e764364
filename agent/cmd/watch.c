// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `whylate watch`: a child process records without end into small shards; this one reads what it writes, removes what
 * is older than a minute, and keeps what surrounds a moment at which the condition is met.  Reports and the user's
 * command run as another user, without a shell.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/record_options.h"
#include "cmd/target_options.h"
#include "live/recorder.h"
#include "live/watch_event.h"
#include "live/watch_keep.h"
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate watch TARGET --when 'p99>20ms for 10s' -o DIR [--every 10m] [--keep 20] [--exec FILE]\n"
	"Stays armed: when the condition is met, the minute before it and the minute after it are kept as a "
	"recording,\n"
	"with a report.  Between events it holds a minute of shards.\n"
	"      --when CONDITION   FIGURE > VALUE [for DURATION] [of TYPE], or with <: mean>5ms, p99>20ms, rate>1000,\n"
	"                         share(100ms)>1% (of requests that took longer); over the last DURATION (10s)\n"
	"      --every DURATION   at most one event in it (default 10m)\n"
	"      --keep N           so many events; the oldest one of this run is removed for a newer one (default 20)\n"
	"      --exec FILE        a program to run after each event, with the event's directory as its argument and "
	"facts\n"
	"                         in its environment (WHYLATE_…); never by a shell\n"
	"      --user NAME        for reports and that program (default: who called sudo, else nobody)\n";

#define EVERY_NS  600000000000ULL
#define EVENTS    20
#define BEHIND_NS 2500000000ULL /* by when a request that ended has been written */
#define TICK_NS   1000000000LL

struct watch {
	struct record_options options; /* dir: where events go */
	struct watch_when when;
	const char *when_text, *exec, *user;
	uint64_t every_ns, keep;
	char armed[PATH_MAX];
	struct watch_user runs_as;
	struct watch_keep *files;
	struct watch_state *state;
	pid_t recorder;
	struct watch_event event; /* under way if until_ts */
	uint64_t until_ts, next_ts;
	char (*kept)[PATH_MAX]; /* events of this run, a ring of `keep` */
	uint64_t event_cnt;
};

static volatile sig_atomic_t stop_requested;

static void on_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

/* --- events --------------------------------------------------------------------------------------------------------
 */

static int begin_event(struct watch *watch, double value)
{
	struct watch_event *event = &watch->event;
	struct timespec now;
	struct tm tm;
	char stamp[32], *slot;
	int err;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%SZ", &tm);
	slot = watch->kept[watch->event_cnt % watch->keep];
	if (watch->event_cnt >= watch->keep)
		watch_remove_dir(slot);
	*event = (struct watch_event){
		.when = watch->when_text,
		.value = value,
		.is_time = watch->when.figure == WATCH_MEAN || watch->when.figure == WATCH_PERCENTILE,
		.wall_s = now.tv_sec,
		.pid = watch->options.pid,
	};
	snprintf(event->dir, sizeof(event->dir), "%s/%s", watch->options.dir, stamp);
	snprintf(slot, PATH_MAX, "%s", event->dir);
	err = watch_keep__begin(watch->files, event->dir);
	if (err) {
		log_error("cannot keep the event in '%s': %s", event->dir, strerror(-err));
		return err;
	}
	watch->event_cnt++;
	watch->until_ts = monotonic_ns() + WATCH_AFTER_NS;
	log_info("%s: %s is met (%s); kept in %s", stamp, watch->when_text, watch_event_value(event), event->dir);
	return 0;
}

static void end_event(struct watch *watch)
{
	watch_keep__end(watch->files);
	watch->until_ts = 0;
	watch->next_ts = monotonic_ns() + watch->every_ns;
	watch_event__finish(&watch->event, &watch->runs_as, watch->exec);
}

/* --- armed ---------------------------------------------------------------------------------------------------------
 */

/* 0: nothing ended; 1: it is over. */
static int tick(struct watch *watch, uint64_t begin_ts)
{
	uint64_t now_ts = monotonic_ns();
	double value;
	int err = watch_keep__look(watch->files, watch->state);

	if (err) {
		log_error("cannot keep the shards in '%s' small: %s", watch->armed, strerror(-err));
		return err;
	}
	if (watch->until_ts && now_ts >= watch->until_ts)
		end_event(watch);
	if (watch_state__met(watch->state, begin_ts, now_ts - BEHIND_NS, &value) && !watch->until_ts &&
	    now_ts >= watch->next_ts)
		return begin_event(watch, value);
	return 0;
}

/* An exit code. */
static int watch_run(struct watch *watch)
{
	const struct sigaction stop = {.sa_handler = on_stop};
	const struct timespec pause = {.tv_nsec = TICK_NS - 1};
	uint64_t begin_ts = monotonic_ns() + BEHIND_NS;
	int err = 0, status = 0, code;
	pid_t ended = 0;

	watch->recorder = recorder_start(&watch->options, watch->armed, WATCH_SHARD_NS);
	if (watch->recorder < 0) {
		log_error("cannot start the recorder: %s", strerror(errno));
		return EXIT_FAILED;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	log_info("armed: %s; events go to %s", watch->when_text, watch->options.dir);
	while (!stop_requested && !err && !(ended = waitpid(watch->recorder, &status, WNOHANG))) {
		nanosleep(&pause, NULL);
		err = tick(watch, begin_ts);
		watch_event_reap();
	}
	if (!ended) {
		kill(watch->recorder, SIGTERM);
		waitpid(watch->recorder, &status, 0);
	}
	code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
	/* What was written last is part of the event. */
	if (watch->until_ts && !watch_keep__look(watch->files, watch->state))
		end_event(watch);
	watch_event_wait();
	watch_keep__remove(watch->files);
	log_info("%" PRIu64 " event%s", watch->event_cnt, watch->event_cnt == 1 ? "" : "s");
	return err ? EXIT_FAILED : code;
}

/* Where the recorder writes, and what bounds it. */
static int prepare(struct watch *watch, const char *dir)
{
	int err = watch_user_find(&watch->runs_as, watch->user);

	if (err) {
		log_error("--user '%s': there is no such user", watch->user);
		return EXIT_USAGE;
	}
	if (mkdir(dir, 0755) && errno != EEXIST) {
		log_error("cannot make '%s': %s", dir, strerror(errno));
		return EXIT_FAILED;
	}
	if (strlen(dir) + 64 > sizeof(watch->armed)) {
		log_error("the name of directory '%.64s…' is too long", dir);
		return EXIT_USAGE;
	}
	snprintf(watch->armed, sizeof(watch->armed), "%s/armed.%d", dir, (int)getpid());
	watch->kept = calloc(watch->keep, sizeof(*watch->kept));
	watch->files = watch_keep__new(watch->armed, watch->when.type, WATCH_BEFORE_NS);
	watch->state = watch_state__new(&watch->when);
	if (watch->kept && watch->files && watch->state)
		return EXIT_DONE;
	log_error("out of memory");
	return EXIT_FAILED;
}

static int run_armed(struct watch *watch)
{
	int code = prepare(watch, watch->options.dir);

	if (!code)
		code = watch_run(watch);
	watch_keep__free(watch->files);
	watch_state__free(watch->state);
	free(watch->kept);
	return code;
}

/* --- the command line ----------------------------------------------------------------------------------------------
 */

static int take_when(void *ctx, const char *command, const char *arg)
{
	struct watch *watch = ctx;

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
	struct watch *watch = ctx;

	return units_number(arg, 1000, &watch->keep)
		       ? usage_error(command, "--keep '%s' is not understood: it wants a number up to 1000", arg)
		       : 0;
}

static int take_exec(void *ctx, const char *command, const char *arg)
{
	struct watch *watch = ctx;

	watch->exec = arg;
	return arg[0] != '/' || access(arg, X_OK)
		       ? usage_error(command, "--exec '%s': it wants the whole path of a program", arg)
		       : 0;
}

static const struct option_row rows[] = {
	OPTION_CALL("when", take_when, .has_arg = required_argument),
	OPTION_DURATION("every", 0, struct watch, every_ns, .example = "10m"),
	OPTION_CALL("keep", take_keep, .has_arg = required_argument),
	OPTION_CALL("exec", take_exec, .has_arg = required_argument),
	OPTION_TEXT("user", 0, struct watch, user),
};

static int check(const struct watch *watch, int argc, char **argv)
{
	if (usage_no_words("watch", argc, argv))
		return EXIT_USAGE;
	if (!watch->when_text)
		return usage_error("watch", "when? --when wants something like 'p99>20ms for 10s'");
	if (!watch->options.dir)
		return usage_error("watch", "where to? -o DIR is for the events");
	if (watch->options.stream.url || watch->options.duration_ns)
		return usage_error("watch", "it stays armed, and streams nothing: --stream and -d are for record");
	return record_options_check(&watch->options, "watch");
}

int cmd_watch(int argc, char **argv)
{
	static struct watch watch = {.every_ns = EVERY_NS, .keep = EVENTS};
	struct target_query query = {0};
	struct target_set set = {0};
	const struct option_group groups[] = {
		OPTION_GROUP(rows, &watch, help),
		target_options_group(&query),
		record_options_group(&watch.options),
	};
	int code;

	record_options_init(&watch.options);
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
		watch.options.target = &set;
		watch.options.pid = set.pids.items[0];
		code = run_armed(&watch);
	}
	target_set_free(&set);
	target_options_free(&query);
	return code;
}
