/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hashes among the sampled variables.  A variable whose values are spread uniformly over the range of its type, are
 * nearly all distinct and do not depend on the one before, in normal and in slow profiles, identifies an element: how
 * its values differ says nothing of the work.
 */
#ifndef WHYLATE_ANALYSIS_VALUE_HASH_H
#define WHYLATE_ANALYSIS_VALUE_HASH_H

#include "analysis/value_facts.h"

/* `rows`: of one variable, by profile, unit and time.  0 or 1, -ENOMEM. */
int value_is_hash(const struct value_input *input, const struct value_row *rows, size_t cnt);

#endif
