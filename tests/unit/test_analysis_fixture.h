/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datasets by hand: rows are given by their categories, latencies are their sums. */
#ifndef WHYLATE_TESTS_ANALYSIS_FIXTURE_H
#define WHYLATE_TESTS_ANALYSIS_FIXTURE_H

#include "analysis/impact.h"
#include "analysis/results.h"

#define FIXTURE_EVENTS_MAX 16

struct analysis_fixture {
	struct dataset dataset;
	struct dataset_event events[FIXTURE_EVENTS_MAX];
	const char *strings[16];
};

/* row_cnt rows of weight 1 without any time; ends the test program without memory. */
void analysis_fixture_init(struct analysis_fixture *fixture, size_t row_cnt);
void analysis_fixture_free(struct analysis_fixture *fixture);

/* Adds to the row's time in a category and so to its latency. */
void fixture_add(struct analysis_fixture *fixture, size_t row, enum wl_category category, uint64_t ns);
void fixture_blame(struct analysis_fixture *fixture, size_t row, enum wl_category category, struct dataset_blame blame);
/* The index of the string, new or known. */
uint32_t fixture_string(struct analysis_fixture *fixture, const char *text);
/* A new event: its values, to be filled in.  With `missing`, a bitmap is made too. */
uint64_t *fixture_event(struct analysis_fixture *fixture, const char *name, uint64_t **missing);

/* Deterministic: uniform in (0, 1), exponential with mean 1. */
double fixture_uniform(uint64_t *state);
double fixture_exponential(uint64_t *state);

/* Sorts the values. */
double fixture_p99(uint64_t *values, size_t cnt);

#define ASSERT_NEAR(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9)

/* impact_compute() with 200 replicates of the fixture's rows. */
void fixture_impacts(struct event_line *lines, const struct analysis_fixture *fixture, double tail);

#endif
