// SPDX-License-Identifier: GPL-2.0-only
/* Recording in observation windows: carries out what the window plan says. */
#include "base/log.h"
#include "cmd/recording_internal.h"

#include <math.h>
#include <string.h>

void recording_windows_init(struct recording *recording)
{
	const struct record_options *options = recording->options;
	double share = options->duty > 0 ? options->duty : window_share(options->rate);

	/* Calls of functions cost where they happen only, and attaching to them takes longer than a window.  Chains
	 * that reach back before a window would be cut. */
	if (recording_probes_wanted(recording) || options->trace || share >= 1)
		return;
	recording->windows = true;
	recording->plan.share = share;
}

void recording_windows_begin(struct recording *recording)
{
	const struct record_options *options = recording->options;

	if (recording->windows)
		window_plan__init(&recording->plan, options->rate, recording->plan.share, recording->begin_ts,
				  options->duration_ns, recording->begin_ts);
}

int recording_windows_step(struct recording *recording)
{
	struct window_plan *plan = &recording->plan;
	struct capture *capture = recording->capture;
	bool drained;

	if (!recording->windows)
		return 0;
	drained = plan->state == WINDOW_DRAINING && capture__window_is_drained(capture);
	if (!window_plan__step(plan, monotonic_ns(), drained))
		return 0;
	switch (plan->state) {
	case WINDOW_WARMING:
		return capture__window_open(capture);
	case WINDOW_SELECTING:
		capture__window_select(capture, window_plan__inside(plan) * CAPTURE_RATE_ALL,
				       window_plan__probability(plan) * CAPTURE_RATE_ALL, plan->select_end_ts);
		return 0;
	case WINDOW_DRAINING:
		capture__window_drain(capture);
		return 0;
	case WINDOW_CLOSED:
		capture__window_close(capture);
		return 0;
	}
	return 0;
}

int recording_windows_timeout(const struct recording *recording, int timeout_ms)
{
	uint64_t now = monotonic_ns(), next;

	if (!recording->windows)
		return timeout_ms;
	next = window_plan__next_ts(&recording->plan, now);
	if (next <= now)
		return 0;
	return next - now < timeout_ms * 1000000ULL ? (next - now) / 1000000 + 1 : (unsigned)timeout_ms;
}

void recording_set_rate(struct recording *recording, double rate)
{
	struct window_plan *plan = &recording->plan;

	if (!recording->windows) {
		capture__set_rate(recording->capture, rate * CAPTURE_RATE_ALL);
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
	return recording->windows ? (uint64_t)rint(recording->represented) : recording->counts.seen;
}
