/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do the samples of a variable differ between normal and slow profiles (vProf §5.1)? */
#ifndef WHYLATE_ANALYSIS_VALUE_JUDGE_H
#define WHYLATE_ANALYSIS_VALUE_JUDGE_H

#include "analysis/value_rank.h"

/*
 * The rows are those of one variable, by profile, unit and time.  `expected`: so many samples the normal profiles have
 * if its function has them as often there; 0: that never runs there; NAN: it was not sampled there.  0 or -ENOMEM.
 */
int value_judge(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
		size_t cnt, double expected);

#endif
