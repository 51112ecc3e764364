// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack_beat.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Fewer ticks say nothing. */
#define TICKS_LEAST 1000
/* Standard deviations: it is asked often, and a false alarm costs a clock. */
#define SIGMAS 6
/* A smaller difference does not matter. */
#define DIFFERENCE_LEAST 0.1

static uint32_t leaf_of(const char *frames)
{
	const char *leaf = strrchr(frames, ';');
	uint64_t hash = 0;

	for (leaf = leaf ? leaf + 1 : frames; *leaf; leaf++)
		hash = random_mix(hash + (unsigned char)*leaf);
	return hash % STACK_BEAT_LEAVES;
}

void stack_beat__add(struct stack_beat *beat, bool is_kernel, double kernel_share, const char *frames)
{
	beat->cnt[is_kernel]++;
	beat->leaves[is_kernel][leaf_of(frames)]++;
	beat->expected += kernel_share;
	beat->variance += kernel_share * (1 - kernel_share);
}

static bool rates_differ(const struct stack_beat *beat)
{
	double difference = fabs((double)beat->cnt[1] - beat->expected);

	return difference > DIFFERENCE_LEAST * beat->expected && difference > SIGMAS * sqrt(beat->variance);
}

/* Chi-square of two samples of different sizes (Numerical Recipes §14.3). */
static bool profiles_differ(const struct stack_beat *beat)
{
	double a = sqrt((double)beat->cnt[1] / (double)beat->cnt[0]), chi2 = 0;
	int freedom = -1;

	for (int i = 0; i < STACK_BEAT_LEAVES; i++) {
		double own = (double)beat->leaves[0][i], kernel = (double)beat->leaves[1][i];
		double difference = a * own - kernel / a;

		if (!(own + kernel > 0))
			continue;
		chi2 += difference * difference / (own + kernel);
		freedom++;
	}
	return freedom > 0 && chi2 > freedom + SIGMAS * sqrt(2.0 * freedom);
}

enum stack_beat_kind stack_beat__found(const struct stack_beat *beat)
{
	if (beat->cnt[0] + beat->cnt[1] < TICKS_LEAST || !(beat->expected > 0))
		return STACK_BEAT_NONE;
	if (rates_differ(beat))
		return STACK_BEAT_RATE;
	return beat->cnt[0] && beat->cnt[1] && profiles_differ(beat) ? STACK_BEAT_PROFILE : STACK_BEAT_NONE;
}
