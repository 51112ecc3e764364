/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first half of compare_sample__make(): which block and stratum each row is in. */
#ifndef WHYLATE_ANALYSIS_COMPARE_ROWS_H
#define WHYLATE_ANALYSIS_COMPARE_ROWS_H

#include "analysis/compare_sample.h"

/* Fills each side up to its entries, and the strata: 0 or -ENOMEM. */
int compare_rows_take(struct compare_sample *sample, const uint8_t *sides);

#endif
