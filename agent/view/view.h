/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results as text for a person and as JSON for a program.  Names from the target are arbitrary bytes: as text they come
 * out harmless to a terminal, as JSON in valid UTF-8.  Text is UTF-8 where LC_CTYPE, which main() sets, says so, else
 * ASCII; LC_NUMERIC is expected to be "C".
 */
#ifndef WHYLATE_VIEW_VIEW_H
#define WHYLATE_VIEW_VIEW_H

#include "analysis/results.h"

#include <stdio.h>

struct view_opts {
	uint32_t top; /* lines per list, 0: all */
	bool colour;
};

/* For standard output: in colour where that is a terminal, unless $NO_COLOR is set. */
struct view_opts view_opts_stdout(uint32_t top);

/* 0 or -EIO, -ENOMEM. */
int view_text(FILE *out, const struct report *report, const struct view_opts *opts);
/* The whole report as one JSON object of schema whylate.report/1 and a newline; `top` does not apply. */
int view_json(FILE *out, const struct report *report);

struct segments;
struct comparison;
struct compare_facts;

/* Two sides; facts: of each.  As above; JSON is schema whylate.compare/1. */
int view_compare_text(FILE *out, const struct comparison *comparison, const struct compare_facts *facts,
		      const struct view_opts *opts);
int view_compare_json(FILE *out, const struct comparison *comparison, const struct compare_facts *facts);
int view_compare_html(FILE *out, const struct comparison *comparison, const struct compare_facts *facts,
		      const struct view_opts *opts);

/* By what the worst segment (B) differs from the median one (A). */
struct segments_view {
	const struct segments_difference *difference; /* NULL: it was not computed */
	const char *command;                          /* that computes it; NULL: there is none */
};
/* A long recording in segments.  As above; JSON is schema whylate.segments/1. */
int view_segments_text(FILE *out, const struct segments *segments, const struct segments_view *more,
		       const struct view_opts *opts);
int view_segments_json(FILE *out, const struct segments *segments, const struct segments_view *more);

/* "817 ns", "12.3 µs", "1.23 ms", "3.42 s"; "–" for NAN: at most 15 bytes into buf, which is returned. */
const char *view_duration(char *buf, size_t sz, double ns);

#endif
