/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports for the tests of agent/view. */
#ifndef WHYLATE_TESTS_VIEW_FIXTURE_H
#define WHYLATE_TESTS_VIEW_FIXTURE_H

#include "analysis/results.h"

/* A comm as an enemy would choose it: terminal sequences, invalid UTF-8, line ends, a direction override, quotes. */
#define HOSTILE                      \
	"ba\x1b[2J\xff\xc3(\n\r\x9b" \
	"31m\xe2\x80\xae\xc2\x9b"    \
	"evil\"\\\x7f"

/* A report as the analysis would hand it over, by hand, with something unknown in every corner. */
struct fixture {
	struct dataset dataset;
	struct report report;
	struct cause causes[3];
	struct event_line events[4];
	struct type_line types[2];
	struct dataset_event hw;
	uint64_t hw_values[4];
};

void fixture_init(struct fixture *fixture);
/* What report_make() gives for a recording without intervals: numbers NAN, lists empty. */
void fixture_init_empty(struct fixture *fixture);
bool fixture_is_utf8(const char *str);
extern const char *const fixture_evidence[2];

#endif
