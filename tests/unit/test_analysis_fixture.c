// SPDX-License-Identifier: GPL-2.0-or-later
#include "test_analysis_fixture.h"
#include "unit.h"

#include "base/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t cnt, size_t sz)
{
	void *memory = calloc(cnt ? cnt : 1, sz);

	if (!memory) {
		fprintf(stderr, "no memory for a test's data\n");
		exit(1);
	}
	return memory;
}

void analysis_fixture_init(struct analysis_fixture *fixture, size_t row_cnt)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->strings[0] = "";
	fixture->dataset.strings = fixture->strings;
	fixture->dataset.string_cnt = 1;
	fixture->dataset.events = fixture->events;
	fixture->dataset.pid = -1;
	fixture->dataset.row_cnt = row_cnt;
	fixture->dataset.latency_ns = room(row_cnt, sizeof(uint64_t));
	fixture->dataset.weight = room(row_cnt, sizeof(double));
	fixture->dataset.type = room(row_cnt, sizeof(uint32_t));
	fixture->dataset.flags = room(row_cnt, sizeof(uint64_t));
	for (size_t i = 0; i < row_cnt; i++)
		fixture->dataset.weight[i] = 1;
}

void analysis_fixture_free(struct analysis_fixture *fixture)
{
	struct dataset *dataset = &fixture->dataset;

	free(dataset->latency_ns);
	free(dataset->weight);
	free(dataset->type);
	free(dataset->flags);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		free(dataset->category_ns[c]);
		free(dataset->blame[c]);
	}
	for (size_t e = 0; e < dataset->event_cnt; e++) {
		free((void *)dataset->events[e].values);
		free((void *)dataset->events[e].missing);
	}
}

void fixture_add(struct analysis_fixture *fixture, size_t row, enum wl_category category, uint64_t ns)
{
	uint64_t **values = &fixture->dataset.category_ns[category];

	if (!*values)
		*values = room(fixture->dataset.row_cnt, sizeof(uint64_t));
	(*values)[row] += ns;
	fixture->dataset.latency_ns[row] += ns;
}

void fixture_blame(struct analysis_fixture *fixture, size_t row, enum wl_category category, struct dataset_blame blame)
{
	struct dataset_blame **all = &fixture->dataset.blame[category];

	if (!*all)
		*all = room(fixture->dataset.row_cnt, sizeof(**all));
	(*all)[row] = blame;
}

uint32_t fixture_string(struct analysis_fixture *fixture, const char *text)
{
	for (uint32_t i = 0; i < fixture->dataset.string_cnt; i++)
		if (!strcmp(fixture->strings[i], text))
			return i;
	fixture->strings[fixture->dataset.string_cnt] = text;
	return (uint32_t)fixture->dataset.string_cnt++;
}

uint64_t *fixture_event(struct analysis_fixture *fixture, const char *name, uint64_t **missing)
{
	uint64_t *values = room(fixture->dataset.row_cnt, sizeof(uint64_t));

	if (missing)
		*missing = room(fixture->dataset.row_cnt / 64 + 1, sizeof(uint64_t));
	fixture->events[fixture->dataset.event_cnt++] =
		(struct dataset_event){.name = name,
				       .is_length = strlen(name) > 3 && !strcmp(name + strlen(name) - 3, ".ns"),
				       .values = values,
				       .missing = missing ? *missing : NULL};
	return values;
}

double fixture_uniform(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

double fixture_exponential(uint64_t *state)
{
	return -log(fixture_uniform(state));
}

ORDER(compare_values, uint64_t, BY(*a, *b));

double fixture_p99(uint64_t *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare_values);
	return (double)values[(size_t)ceil(0.99 * (double)cnt) - 1];
}

void fixture_impacts(struct event_line *lines, const struct analysis_fixture *fixture, double tail)
{
	const struct dataset *dataset = &fixture->dataset;
	struct share_rows rows = {dataset->row_cnt, dataset->latency_ns, dataset->weight, NULL, 0, 0};
	struct tail_blocks blocks;
	struct tail_error error;
	struct impact_opts opts = {.tail = tail, .blocks = &blocks, .error = &error};
	struct stats_order order;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, dataset->latency_ns, dataset->weight, dataset->row_cnt), 0);
	CU_ASSERT_EQUAL_FATAL(tail_blocks__init(&blocks, &rows, 200, 1), 0);
	rows.late_ns = stats_quantile(&order, tail, NULL, NULL, order.total_weight);
	error = tail_blocks__error(&blocks, &rows);
	CU_ASSERT_EQUAL_FATAL(impact_compute(lines, dataset, &order, &opts), 0);
	tail_blocks__free(&blocks);
	stats_order__free(&order);
}
