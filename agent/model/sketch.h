/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a sketch, column `sketch` of the table `summary`: how much weight each loghist class has. */
#ifndef WHYLATE_MODEL_SKETCH_H
#define WHYLATE_MODEL_SKETCH_H

#include "base/loghist.h"

#include <stddef.h>
#include <stdint.h>

#define SKETCH_TEXT_SZ    (LOGHIST_CLASS_CNT * 20)
#define SKETCH_WEIGHT_MAX 1e15

/* Neighbouring classes. */
struct sketch_run {
	uint32_t first, cnt;
};

struct sketch {
	uint32_t first, last; /* class of all; first > last: none */
	uint32_t run_cnt, weight_cnt;
	struct sketch_run runs[LOGHIST_CLASS_CNT];
	double weights[LOGHIST_CLASS_CNT]; /* those of the first run, then those of the next one, … */
};

/*
 * Runs of classes, a blank between them: "CLASS=WSDD…", with digits of base 64 from '0' (0) to 'o' (63).  W digits, the
 * high ones first, are the number of CLASS, the next W that of the class after it; a weight is its number by 2^S.  The
 * smallest S is taken for which no weight is off by more than 1/65536 of itself: 0 for whole ones, which are exact.
 */
void sketch_text(char buf[SKETCH_TEXT_SZ], const float weights[LOGHIST_CLASS_CNT]);
/*
 * Reads that, and what older recordings have, "CLASS:WEIGHT" with a decimal number, which may be among it.
 * 0 or -EBADMSG.
 */
int sketch_read(struct sketch *sketch, const char *text);

#endif
