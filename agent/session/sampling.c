// SPDX-License-Identifier: GPL-2.0-or-later
/* What --stacks adds to a recording. */
#include "base/log.h"
#include "session/session_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

uint32_t recording_stacks_hz(const struct recording *recording)
{
	if (recording->options->stacks_hz)
		return recording->options->stacks_hz;
	return recording->options->client ? recording->options->client->stacks_hz : 0;
}

int recording_stacks_start(struct recording *recording)
{
	struct capture_stacks capture = {
		.hz = recording_stacks_hz(recording),
		.waits = true,
		.always = recording->options->stacks_all,
	};
	struct stacks_opts opts = {
		.pid = recording->options->pid,
		.program = recording->program,
		.append = recording_append,
		.owner = recording,
		.hot = recording->hot,
	};
	int err;

	if (!capture.hz)
		return 0;
	if (!capture__survey(recording->capture)->tier[HOOK_FEATURE_STACK]) {
		log_warn("user stacks cannot be sampled on this kernel: %s",
			 capture__survey(recording->capture)->missing[HOOK_FEATURE_STACK]);
		return 0;
	}
	err = stacks__new(&opts, &recording->stacks);
	if (!err)
		err = capture__sample_stacks(recording->capture, &capture);
	if (err)
		log_error("cannot sample user stacks of process %d: %s", opts.pid, strerror(-err));
	return err ? err : recording_say(recording, "stacks_hz", "%u", capture.hz);
}

void recording_stacks_stop(struct recording *recording)
{
	capture__stop_stacks(recording->capture);
	if (recording->stacks)
		stacks__end(recording->stacks);
}

int recording_stacks_take(struct recording *recording, const struct wl_record_header *record)
{
	return recording->stacks ? stacks__take(recording->stacks, record) : 0;
}

void recording_stacks_changed(struct recording *recording, pid_t pid)
{
	if (recording->stacks)
		stacks__changed(recording->stacks, pid);
}

int recording_stacks_write_counts(struct recording *recording)
{
	struct stack_sample_counts counts;
	int err;

	if (!recording->stacks)
		return 0;
	stacks__counts(recording->stacks, &counts);
	err = recording_say(recording, "stack_records", "%" PRIu64, counts.stacks);
	err = err ? err : recording_say(recording, "stack_waits", "%" PRIu64, counts.waits);
	err = err ? err : recording_say(recording, "stacks_complete", "%" PRIu64, counts.complete);
	return err ? err : recording_say(recording, "stacks_guessed", "%" PRIu64, counts.guessed);
}

void recording_stacks_say(const struct recording *recording)
{
	struct stack_sample_counts counts;

	if (!recording->stacks)
		return;
	stacks__counts(recording->stacks, &counts);
	log_info("stacks: %" PRIu64 " sampled, %" PRIu64 " of them of waits; %.1f %% up to the beginning of their "
		 "thread, %.1f %% with guessed frames",
		 counts.stacks, counts.waits, counts.stacks ? 100.0 * counts.complete / counts.stacks : 0,
		 counts.stacks ? 100.0 * counts.guessed / counts.stacks : 0);
	if (counts.displaced || counts.impossible)
		log_info("stacks: %" PRIu64 " waits were not followed to their end, %" PRIu64 " records cannot be true",
			 counts.displaced, counts.impossible);
}
