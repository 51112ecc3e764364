// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recording in observation windows: carries out what the window plan says.
 *
 * In trace mode, too, all hooks but those of tasks are detached between windows.  When all hooks of
 * a window are attached, each followed thread is met once (capture__window_open()): its segments begin there, and what
 * it is blocked in is read from its system call, a mutex's owner from its memory.  A selected interval begins later and
 * ends while hooks are attached, so that its path never reaches back before the window.
 */
#include "base/log.h"
#include "session/client.h"
#include "session/recording.h"

#include <errno.h>
#include <math.h>

/*
 * What a window recorded stays in the rings until it is closed, but not for longer and not more of a ring than this: on
 * a machine without an idle CPU a pass may take a second.
 */
#define UNREAD_MAX_NS 250000000ULL
#define UNREAD_MAX    0.25
/* So long before a window the main thread begins to be one that gets a CPU at once. */
#define WAKE_NS 20000000ULL

/*
 * Why hooks cannot be attached in a part of the time, NULL: they can.  Probes are never attached in windows, which
 * takes longer than a window; between windows they count, and that is all.  So what lasts from one to the next is not
 * known: which interval began by a key, who holds a lock, what was put into a queue.
 */
static const char *why_always(const struct recording *recording)
{
	if (recording->symbols.marked)
		return "the program's markers say what a request is";
	if (!probe_lines_only_time(&recording->symbols.lines))
		return "a line of the symbol list does more than to time a function";
	return NULL;
}

static const char *why_all_the_time(const struct recording *recording)
{
	const char *why = why_always(recording);

	return why || !recording->options->client ? why : recording->options->client->why_always;
}

int recording_windows_init(struct recording *recording)
{
	const struct record_options *options = recording->options;
	double share = options->duty > 0 ? options->duty : window_share(options->rate);
	const char *why;

	/* Without windows, unless it turns out to cost too much. */
	if (share >= 1 && (options->duty > 0 || !recording_has_budget(recording)))
		return 0;
	why = why_all_the_time(recording);
	if (why && options->duty > 0) {
		log_error("--duty %g%% is not possible: %s", 100 * share, why);
		return -EINVAL;
	}
	if (why) {
		if (share < 1 && !options->quiet)
			log_info("hooks stay attached all the time at this rate: %s", why);
		return 0;
	}
	recording->windows.on = true;
	recording->windows.plan.share = share;
	/*
	 * Trace mode begins with little: at full load it would cost a quarter of the CPU, and lose records, meanwhile.
	 * So does a recorder that stays armed: whatever its hooks take at first it would save for seconds.
	 */
	if (share >= 1 && (options->trace || options->armed) && recording_has_budget(recording)) {
		recording->windows.plan.share = govern_share_first(options->budget);
		recording->governor.of_windows = true;
	}
	return 0;
}

const char *recording_windows_hint(const struct recording *recording)
{
	if (why_always(recording))
		return "";
	if (recording_client_probes(recording))
		return ": without --rounds hooks may be attached for a part of the time";
	return recording->options->duty >= 1 ? ": without --duty 100% hooks may be attached for a part of the time"
					     : "";
}

bool recording_windows_rested(const struct recording *recording)
{
	return recording->windows.on && recording->windows.plan.rested;
}

static void select_in_window(struct recording *recording)
{
	const struct window_plan *plan = &recording->windows.plan;

	capture__window_select(recording->capture, (uint64_t)(window_plan__inside(plan) * CAPTURE_RATE_ALL),
			       (uint64_t)(window_plan__probability(plan) * CAPTURE_RATE_ALL),
			       plan->endless ? 0 : plan->select_ts, plan->endless ? 0 : plan->select_end_ts);
}

void recording_windows_begin(struct recording *recording)
{
	const struct record_options *options = recording->options;

	if (!recording->windows.on)
		return;
	window_plan__init(&recording->windows.plan, options->rate, recording->windows.plan.share,
			  recording->clock.begin_ts, options->duration_ns, recording->clock.begin_ts);
	if (recording->windows.plan.endless)
		select_in_window(recording);
}

int recording_windows_step(struct recording *recording)
{
	struct window_plan *plan = &recording->windows.plan;
	struct capture *capture = recording->capture;
	int err = 0;

	while (recording->windows.on && !err) {
		bool drained = plan->state == WINDOW_DRAINING && capture__window_is_drained(capture);

		if (!window_plan__step(plan, monotonic_ns(), drained, recording_may_hold(recording)))
			break;
		switch (plan->state) {
		case WINDOW_WARMING:
			err = capture__window_open(recording->capture, recording->windows.plan.share >= 1);
			break;
		case WINDOW_SELECTING:
			select_in_window(recording);
			break;
		case WINDOW_DRAINING:
			capture__window_drain(capture);
			break;
		case WINDOW_CLOSED:
			capture__window_close(capture);
			break;
		}
	}
	return err;
}

int recording_windows_look(struct recording *recording)
{
	/* The rest of the pass would keep the hooks attached, and may take long. */
	return recording->windows.plan.state == WINDOW_CLOSED ? 0 : recording_windows_step(recording);
}

enum pace_class recording_windows_pace(const struct recording *recording)
{
	const struct window_plan *plan = &recording->windows.plan;
	uint64_t now = monotonic_ns();

	if (!recording->windows.on ||
	    (plan->state == WINDOW_CLOSED ? window_plan__next_ts(plan, 0) >= now + WAKE_NS : plan->endless))
		return PACE_IDLE;
	if (now - recording->windows.read_ts < UNREAD_MAX_NS && capture__backlog(recording->capture) < UNREAD_MAX)
		return PACE_TIMED;
	return plan->state == WINDOW_CLOSED ? PACE_IDLE : PACE_RAISED;
}

int recording_windows_timeout(const struct recording *recording, int timeout_ms)
{
	uint64_t now = monotonic_ns(), next;

	if (!recording->windows.on)
		return timeout_ms;
	next = window_plan__next_ts(&recording->windows.plan, now);
	/* Once before, as an idle task, and from then on as a timed one. */
	if (recording->windows.plan.state == WINDOW_CLOSED && next > now + WAKE_NS)
		next -= WAKE_NS / 2;
	if (next <= now)
		return 0;
	return next - now < timeout_ms * 1000000ULL ? (next - now) / 1000000 + 1 : (unsigned)timeout_ms;
}

void recording_set_rate(struct recording *recording, double rate)
{
	struct window_plan *plan = &recording->windows.plan;

	if (recording->clock.pauses.begin_ts) {
		recording->clock.paused_rate = (uint64_t)(rate * CAPTURE_RATE_ALL);
		return;
	}
	if (!recording->windows.on) {
		capture__set_rate(recording->capture, (uint64_t)(rate * CAPTURE_RATE_ALL));
		return;
	}
	if (recording->governor.of_windows) {
		plan->rate = rate;
		if (plan->endless && plan->state == WINDOW_SELECTING)
			select_in_window(recording);
		return;
	}
	/* How the hooks are attached was decided when the recording began. */
	if (rate > plan->share)
		log_warn(
			"a rate of %g %% needs a new recording: this one looks for %g %% of the time only, and selects "
			"all it sees",
			100 * rate, 100 * plan->share);
	plan->rate = rate < plan->share ? rate : plan->share;
}

uint64_t recording_intervals_seen(const struct recording *recording)
{
	return recording_windows_rested(recording) ? (uint64_t)rint(recording->intervals.represented)
						   : recording->counts.seen;
}
