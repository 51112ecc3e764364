/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which bug pattern the variables of a function tell of (vProf §5.2, rules 1 to 3).  Pure functions. */
#ifndef WHYLATE_ANALYSIS_VALUE_PATTERN_H
#define WHYLATE_ANALYSIS_VALUE_PATTERN_H

#include "analysis/value_rank.h"

/* What one variable says; 0: nothing, as when its ratio is above `least`, that of the most anomalous one. */
uint8_t value_signs(const struct value_input *input, const struct value_verdict *verdicts, uint32_t variable,
		    double least);
/* By the signs of all variables of a function. */
enum value_pattern value_pattern_of(uint8_t signs);

#endif
