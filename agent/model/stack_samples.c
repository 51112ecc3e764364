// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack_samples.h"

#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 4096 /* a power of two */

/* Half of a wait: its stack, or its end. */
struct half {
	uint64_t ts;  /* of the stack's record */
	uint32_t tid; /* 0: the place is free */
	bool is_end;
	uint64_t blocked_ns, runq_ns; /* of the end */
	struct stack_sample sample;   /* of the stack; weight_ns: waits that it stands for */
	struct unwind_frame *frames;  /* its frames, ours */
};

struct stack_samples {
	stack_sink sink;
	void *owner;
	struct stack_sample_counts counts;
	struct half halves[PLACES];
};

struct stack_samples *stack_samples__new(stack_sink sink, void *owner)
{
	struct stack_samples *samples = calloc(1, sizeof(*samples));

	if (samples) {
		samples->sink = sink;
		samples->owner = owner;
	}
	return samples;
}

void stack_samples__free(struct stack_samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < PLACES; i++)
		free(samples->halves[i].frames);
	free(samples);
}

static struct half *place_of(struct stack_samples *samples, uint32_t tid, uint64_t ts)
{
	return &samples->halves[random_mix(ts + tid) & (PLACES - 1)];
}

static void half__drop(struct stack_samples *samples, struct half *half)
{
	if (half->tid && !half->is_end)
		samples->counts.open--;
	free(half->frames);
	memset(half, 0, sizeof(*half));
}

/* Whoever has the place gives it up. */
static void half__displace(struct stack_samples *samples, struct half *half)
{
	if (!half->tid)
		return;
	samples->counts.displaced++;
	half__drop(samples, half);
}

static int give_wait(struct stack_samples *samples, const struct stack_sample *stack, uint64_t blocked_ns,
		     uint64_t runq_ns)
{
	struct stack_sample sample = *stack;
	int err;

	sample.weight_ns = stack->weight_ns * (double)blocked_ns;
	sample.end_ts = sample.ts + blocked_ns;
	err = samples->sink(samples->owner, &sample);
	if (err || !runq_ns)
		return err;
	sample.state = WL_STATE_RUNQ_WAKEUP;
	sample.object = 0;
	sample.ts = sample.end_ts;
	sample.end_ts = sample.ts + runq_ns;
	sample.weight_ns = stack->weight_ns * (double)runq_ns;
	return samples->sink(samples->owner, &sample);
}

static int hold(struct stack_samples *samples, struct half *half, const struct stack_sample *sample)
{
	struct unwind_frame *frames = malloc(sample->frame_cnt * sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	memcpy(frames, sample->frames, sample->frame_cnt * sizeof(*frames));
	*half = (struct half){.ts = sample->ts, .tid = sample->tid, .sample = *sample, .frames = frames};
	half->sample.frames = frames;
	samples->counts.open++;
	return 0;
}

int stack_samples__take(struct stack_samples *samples, const struct wl_stack_record *record,
			const struct unwind_frame *frames, size_t frame_cnt, enum unwind_end end)
{
	double factor = record->rate ? 4294967296.0 / record->rate : 1;
	struct stack_sample sample = {
		.ts = record->ts,
		.sid = record->sid,
		.object = record->object,
		.pid = record->pid,
		.tid = record->tid,
		.cpu = record->header.cpu,
		.state = (enum wl_state)record->state,
		.frames = frames,
		.frame_cnt = frame_cnt,
		.complete = end == UNWIND_START,
	};
	struct half *half;
	bool guessed = false;
	int err = 0;

	samples->counts.stacks++;
	if (record->state >= WL_STATE_CNT || !record->tid || !frame_cnt) {
		samples->counts.impossible++;
		return 0;
	}
	for (size_t i = 0; i < frame_cnt; i++)
		guessed |= frames[i].how == UNWIND_BY_SCAN;
	samples->counts.complete += sample.complete;
	samples->counts.guessed += guessed;
	if (!(record->flags & WL_STACK_WAITS)) {
		sample.period_ns = (double)record->running_ns;
		sample.weight_ns = factor * sample.period_ns;
		return samples->sink(samples->owner, &sample);
	}
	sample.weight_ns = factor * record->stands_for;
	half = place_of(samples, record->tid, record->ts);
	if (half->is_end && half->tid == record->tid && half->ts == record->ts) {
		err = give_wait(samples, &sample, half->blocked_ns, half->runq_ns);
		half__drop(samples, half);
		return err;
	}
	half__displace(samples, half);
	return hold(samples, half, &sample);
}

int stack_samples__take_wait(struct stack_samples *samples, const struct wl_stack_wait_record *record)
{
	struct half *half = place_of(samples, record->tid, record->ts);
	int err;

	samples->counts.waits++;
	if (!record->tid) {
		samples->counts.impossible++;
		return 0;
	}
	if (!half->is_end && half->tid == record->tid && half->ts == record->ts) {
		err = give_wait(samples, &half->sample, record->blocked_ns, record->runq_ns);
		half__drop(samples, half);
		return err;
	}
	half__displace(samples, half);
	*half = (struct half){.ts = record->ts,
			      .tid = record->tid,
			      .is_end = true,
			      .blocked_ns = record->blocked_ns,
			      .runq_ns = record->runq_ns};
	return 0;
}

void stack_samples__counts(const struct stack_samples *samples, struct stack_sample_counts *counts)
{
	*counts = samples->counts;
}
