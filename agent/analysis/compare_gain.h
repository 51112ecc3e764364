/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a side's latency would be without a root; for compare_roots.c.
 *
 * Each side stands alone, with its own mix of types and its own weights, as in a report of it (root_gain.c).  So the
 * gain of a root on one side does not depend on the other side.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_GAIN_H
#define WHYLATE_ANALYSIS_COMPARE_GAIN_H

#include "analysis/compare.h"
#include "analysis/roots_report.h"

/*
 * Fills comparison->whole and the gains of the roots: comparison->roots.lines[i] is lines->lines[i].  sides: of the
 * rows that have a critical path.  0 or -ENOMEM.
 */
int compare_gain__fill(struct comparison *comparison, const struct root_lines *lines, const uint8_t *sides,
		       const struct compare_opts *opts);

#endif
