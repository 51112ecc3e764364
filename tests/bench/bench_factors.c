// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long factors take: the tree over made-up calls, selection, the second walk, intervals of confidence (10 million
 * calls in under a minute on two cores), and how that grows with the calls and with the children of one parent.
 *
 *	bench_factors [CALLS [CHILDREN]]
 *
 * One line on stdout.  Making the data is not counted.
 */
#include "analysis/factors_report.h"
#include "base/clock.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_PER_ROW 20 /* a root, and what it calls, some of it two deep */

static uint64_t random_state = 1;

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "bench_factors: no memory\n");
		exit(1);
	}
	return memory;
}

static void must_work(int err)
{
	if (err) {
		fprintf(stderr, "bench_factors: error %d\n", err);
		exit(1);
	}
}

static struct call *put(struct invocations *to, uint32_t row, uint32_t func, uint64_t begin_ts, uint64_t end_ts)
{
	struct call *call = &to->calls[to->call_cnt++];

	*call = (struct call){
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.call_addr = 0x1000 + func,
		.doing_ns[TREE_LOCK] = (end_ts - begin_ts) / 3,
		.row = row,
		.tid = 1,
		.func = func,
		.seq = (uint32_t)to->call_cnt,
	};
	return call;
}

/* The root calls functions one after the other, each of which calls one more. */
static uint64_t put_row(struct invocations *to, uint32_t row, uint64_t ts, uint32_t children)
{
	struct call *root = put(to, row, 0, ts, ts);

	for (int i = 0; i < (CALLS_PER_ROW - 1) / 2; i++) {
		uint64_t ns = 1000 + random_next(&random_state) % 5000;
		uint32_t func = 1 + (uint32_t)(random_next(&random_state) % children);

		if (!(random_next(&random_state) % 200))
			ns += random_next(&random_state) % 1000000;
		put(to, row, func, ts, ts + ns);
		put(to, row, 1 + children + func, ts + ns / 4, ts + ns / 2);
		ts += ns;
	}
	root->end_ts = ts;
	return ts;
}

static void make(struct invocations *to, struct dataset *dataset, size_t calls, uint32_t children)
{
	size_t rows = calls / CALLS_PER_ROW + 1;
	uint64_t ts = 1000;
	uint32_t id;

	to->arena = to->strings.arena = must(arena__new());
	must_work(intern__id(&to->strings, "", &id));
	for (uint32_t f = 0; f < 2 + 2 * children; f++) {
		struct invocation_symbol symbol = {.id = f, .height = f ? f <= children : 2};
		char name[32];

		snprintf(name, sizeof(name), "function_%u", f);
		must_work(intern__id(&to->strings, name, &symbol.name));
		must_work(vec_push(&to->symbols, symbol));
	}
	to->calls = must(calloc(rows * CALLS_PER_ROW, sizeof(*to->calls)));
	to->first = must(calloc(rows + 2, sizeof(*to->first)));
	to->rows = must(calloc(rows, sizeof(*to->rows)));
	to->row_cnt = rows;
	to->row_cnt_all = rows + 1;
	dataset->row_cnt = rows;
	dataset->begin_ts = must(calloc(rows, sizeof(uint64_t)));
	dataset->latency_ns = must(calloc(rows, sizeof(uint64_t)));
	dataset->weight = must(calloc(rows, sizeof(double)));
	dataset->flags = must(calloc(rows, sizeof(uint64_t)));
	dataset->session = must(calloc(rows, sizeof(uint32_t)));
	dataset->type = must(calloc(rows, sizeof(uint32_t)));
	dataset->window = must(calloc(rows, sizeof(uint32_t)));
	dataset->category_ns[WL_CATEGORY_ONCPU] = must(calloc(rows, sizeof(uint64_t)));
	dataset->strings = must(calloc(1, sizeof(char *)));
	dataset->strings[0] = "";
	dataset->string_cnt = 1;
	dataset->session_cnt = 1;
	for (uint32_t row = 0; row < rows; row++) {
		to->first[row] = to->call_cnt;
		to->rows[row] = (struct invocation_row){ts, 1, 1};
		dataset->begin_ts[row] = ts;
		ts = put_row(to, row, ts, children) + 500;
		calls_sort(to->calls + to->first[row], to->call_cnt - to->first[row]);
		dataset->latency_ns[row] = ts - dataset->begin_ts[row];
		dataset->category_ns[WL_CATEGORY_ONCPU][row] = dataset->latency_ns[row];
		dataset->weight[row] = 1;
	}
	to->first[rows] = to->first[rows + 1] = to->call_cnt;
}

int main(int argc, char **argv)
{
	size_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	uint32_t children = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20;
	const struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct invocations invocations = {0};
	struct factor_analysis analysis;
	struct dataset dataset = {.pid = -1};
	struct report_opts opts = {.tail = 0.99, .seed = 1, .factors = &analysis};
	uint64_t begin_ns, tree_ns, report_ns;
	struct report report;

	make(&invocations, &dataset, calls, children);
	begin_ns = monotonic_ns();
	must_work(factor_analysis_make(&analysis, &invocations, &dataset, NULL, WALK_LAST_ROUND, &rule, NULL));
	tree_ns = monotonic_ns() - begin_ns;
	must_work(report_make(&report, &dataset, &opts));
	report_ns = monotonic_ns() - begin_ns - tree_ns;
	printf("%zu calls in %zu intervals, %u children, %zu nodes, %zu factors: tree and selection %.2f s (%.0f ns a "
	       "call), report with intervals of confidence %.2f s\n",
	       invocations.call_cnt, dataset.row_cnt, children, variance_tree__node_cnt(analysis.walk.tree),
	       analysis.factors.list.cnt, tree_ns / 1e9, (double)tree_ns / (double)invocations.call_cnt,
	       report_ns / 1e9);
	return 0;
}
