// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch.h"

#include "base/clock.h"
#include "base/dirs.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/privilege.h"
#include "live/recorder.h"
#include "live/watch_event.h"
#include "live/watch_keep.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BEHIND_NS 2500000000ULL /* by when a request that ended has been written */
#define TICK_NS   1000000000LL

struct watch {
	const struct watch_options *options;
	char *dir;            /* where events go: absolute, the user's program has another working directory */
	char armed[PATH_MAX]; /* where the shards are until then */
	int armed_fd;         /* it is in use; -1 */
	struct watch_user runs_as;
	struct watch_keep *files;
	struct watch_state *state;
	pid_t recorder;
	struct watch_event event; /* under way if until_ts */
	uint64_t until_ts, next_ts;
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

static void begin_event(struct watch *watch, double value)
{
	struct watch_event *event = &watch->event;
	struct timespec now;
	struct tm tm;
	char stamp[32];
	int err;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%SZ", &tm);
	*event = (struct watch_event){
		.when = watch->options->when_text,
		.value = value,
		.is_time = watch->options->when.figure == WATCH_MEAN || watch->options->when.figure == WATCH_PERCENTILE,
		.wall_s = now.tv_sec,
		.pid = watch->options->record.pid,
	};
	snprintf(event->dir, sizeof(event->dir), "%s/%s", watch->dir, stamp);
	err = watch_keep__begin(watch->files, event->dir);
	if (err) {
		log_error("cannot keep the event in '%s': %s; the watch stays armed", event->dir, strerror(-err));
		watch->next_ts = monotonic_ns() + watch->options->every_ns;
		return;
	}
	watch_keep_newest(watch->dir, watch->options->keep);
	watch->event_cnt++;
	watch->until_ts = monotonic_ns() + WATCH_AFTER_NS;
	log_info("%s: %s is met (%s); kept in %s", stamp, watch->options->when_text, watch_event_value(event),
		 event->dir);
}

static void end_event(struct watch *watch)
{
	watch_keep__end(watch->files);
	watch->until_ts = 0;
	watch->next_ts = monotonic_ns() + watch->options->every_ns;
	watch_event__finish(&watch->event, &watch->runs_as, watch->options->exec);
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
		begin_event(watch, value);
	return 0;
}

/* An exit code. */
static int run_armed(struct watch *watch)
{
	const struct sigaction stop = {.sa_handler = on_stop};
	uint64_t begin_ts = monotonic_ns() + BEHIND_NS;
	int err = 0, status = 0, code;
	pid_t ended = 0;

	watch->recorder = recorder_start(&watch->options->record, watch->armed, WATCH_SHARD_NS);
	if (watch->recorder < 0) {
		log_error("cannot start the recorder: %s", strerror(errno));
		watch_keep__remove(watch->files);
		return EXIT_FAILED;
	}
	privilege_confine_watch();
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	log_info("armed: %s; events go to %s", watch->options->when_text, watch->dir);
	while (!stop_requested && !err && !(ended = waitpid(watch->recorder, &status, WNOHANG))) {
		sleep_ns(TICK_NS - 1);
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

/* What would be noticed at the first event only: it may be weeks away. */
static int find_user(struct watch *watch)
{
	const char *exec = watch->options->exec;
	int err = watch_user_find(&watch->runs_as, watch->options->user);

	if (err) {
		log_error("--user '%s': there is no such user", watch->options->user);
		return EXIT_USAGE;
	}
	err = exec ? watch_user_may(&watch->runs_as, exec, false) : 0;
	if (err) {
		log_error("--exec '%s': user '%s' cannot run it: %s (--user names another one)", exec,
			  watch->runs_as.name, strerror(-err));
		return EXIT_USAGE;
	}
	return 0;
}

/* Where the recorder writes, and what bounds it. */
static int prepare(struct watch *watch, const char *dir)
{
	int err;

	err = make_dirs(dir, 0755);
	if (err) {
		log_error("cannot make '%s': %s", dir, strerror(-err));
		return EXIT_FAILED;
	}
	watch->dir = realpath(dir, NULL);
	if (!watch->dir) {
		log_error("cannot find '%s': %s", dir, strerror(errno));
		return EXIT_FAILED;
	}
	if (strlen(watch->dir) + 64 > sizeof(watch->armed)) {
		log_error("the name of directory '%.64s…' is too long", dir);
		return EXIT_USAGE;
	}
	err = watch_user_may(&watch->runs_as, watch->dir, true);
	if (err)
		log_warn("events get no report: user '%s' cannot read '%s': %s (--user names another one)",
			 watch->runs_as.name, watch->dir, strerror(-err));
	snprintf(watch->armed, sizeof(watch->armed), "%s/armed.%d", watch->dir, (int)getpid());
	watch_keep_sweep(watch->dir);
	watch->armed_fd = watch_keep_claim(watch->armed);
	if (watch->armed_fd < 0) {
		log_error("cannot make '%s': %s", watch->armed, strerror(-watch->armed_fd));
		return EXIT_FAILED;
	}
	watch->files = watch_keep__new(watch->armed, watch->options->when.type, WATCH_BEFORE_NS);
	watch->state = watch_state__new(&watch->options->when);
	if (watch->files && watch->state)
		return EXIT_DONE;
	log_error("out of memory");
	return EXIT_FAILED;
}

int watch_run(const struct watch_options *options)
{
	struct watch watch = {.options = options, .armed_fd = -1};
	int code = find_user(&watch);

	if (!code)
		code = prepare(&watch, options->record.dir);
	if (!code)
		code = run_armed(&watch);
	if (watch.armed_fd >= 0)
		close(watch.armed_fd);
	watch_keep__free(watch.files);
	watch_state__free(watch.state);
	free(watch.dir);
	return code;
}
