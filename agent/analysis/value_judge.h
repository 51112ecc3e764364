/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do the samples of a variable differ between normal and slow profiles (vProf §5.1)? */
#ifndef WHYLATE_ANALYSIS_VALUE_JUDGE_H
#define WHYLATE_ANALYSIS_VALUE_JUDGE_H

#include "analysis/value_facts.h"

/*
 * The rows are those of one variable, by profile, unit and time.  `expected`: so many samples the normal profiles have
 * if its function has them as often there; 0: that never runs there; NAN: it was not sampled there.  0 or -ENOMEM.
 */
int value_judge(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
		size_t cnt, double expected);

/* The values do not differ by the test: are there too few normal samples for one, and all others beyond them? */
bool value_is_suspect(const struct value_variable_facts *facts, size_t normal_cnt, size_t slow_cnt, double beyond);

#endif
