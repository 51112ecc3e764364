// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any text as a sketch.  What is taken lies within the classes, and goes round.  Build and run: make fuzz
 */
#include "model/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void sum_up(const struct sketch *sketch, double *sums)
{
	const double *weight = sketch->weights;

	memset(sums, 0, LOGHIST_CLASS_CNT * sizeof(*sums));
	for (uint32_t r = 0; r < sketch->run_cnt; r++) {
		const struct sketch_run *run = &sketch->runs[r];

		must(run->cnt && run->first >= sketch->first && run->first + run->cnt - 1 <= sketch->last);
		for (uint32_t c = 0; c < run->cnt; c++, weight++) {
			must(*weight >= 0 && *weight < SKETCH_WEIGHT_MAX);
			sums[run->first + c] += *weight;
		}
	}
	must(weight == sketch->weights + sketch->weight_cnt);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static double sums[LOGHIST_CLASS_CNT], again[LOGHIST_CLASS_CNT];
	static float weights[LOGHIST_CLASS_CNT];
	static char written[SKETCH_TEXT_SZ];
	static struct sketch sketch;
	char *text = malloc(sz + 1);
	double most = 0;

	must(text != NULL);
	memcpy(text, bytes, sz);
	text[sz] = '\0';
	if (!sketch_read(&sketch, text)) {
		must(sketch.weight_cnt <= LOGHIST_CLASS_CNT);
		must(!sketch.run_cnt || (sketch.first <= sketch.last && sketch.last < LOGHIST_CLASS_CNT));
		sum_up(&sketch, sums);
		for (uint32_t c = 0; c < LOGHIST_CLASS_CNT; c++) {
			weights[c] = (float)sums[c];
			most = fmax(most, sums[c]);
		}
		sketch_text(written, weights);
		must(most >= SKETCH_WEIGHT_MAX / 2 || !sketch_read(&sketch, written));
		if (most < SKETCH_WEIGHT_MAX / 2)
			sum_up(&sketch, again);
		/* Next to one that takes all bits of a number the others have few. */
		for (uint32_t c = 0; c < LOGHIST_CLASS_CNT && most < SKETCH_WEIGHT_MAX / 2; c++)
			must(fabs(again[c] - sums[c]) <= fmax(sums[c] * 0x1p-15, most * 0x1p-51 + 0x1p-64));
	}
	free(text);
	return 0;
}
