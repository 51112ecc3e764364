/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which bug pattern the variables of a function tell of (vProf §5.2, rules 1 to 3).  Pure functions. */
#ifndef WHYLATE_ANALYSIS_VALUE_PATTERN_H
#define WHYLATE_ANALYSIS_VALUE_PATTERN_H

#include "analysis/value_facts.h"

/*
 * For how long the variable stays in slow profiles, if it goes from one to the next of many: an address, or what a loop
 * changes; INFINITY: it does not.
 */
double value_step(const struct value_variable_facts *facts, const struct value_verdict *verdict);
/*
 * What one variable says; 0: nothing, as when its ratio is above `least`, that of the most anomalous one.  `step`: the
 * least of the function.
 */
uint8_t value_signs(const struct value_input *input, const struct value_verdict *verdicts, uint32_t variable,
		    double least, double step);
/* Is it a flag that the function tests, in a state that normal profiles do not have? */
bool value_is_given(const struct value_variable_facts *facts, const struct value_verdict *verdict);
/* Is it another one at almost each sample? */
bool value_is_of_many(const struct value_verdict *verdict);
/* By the signs of all variables of a function. */
enum value_pattern value_pattern_of(uint8_t signs);

#endif
