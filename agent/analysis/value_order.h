/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of functions whose calibrated costs are known, and rule 4 of the patterns (vProf §5.2), which goes by it.
 */
#ifndef WHYLATE_ANALYSIS_VALUE_ORDER_H
#define WHYLATE_ANALYSIS_VALUE_ORDER_H

#include "analysis/value_facts.h"

/* 0 or -ENOMEM. */
int value_order(struct value_ranking *ranking, const struct value_input *input);

#endif
