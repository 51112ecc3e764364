// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/hosts.h"

#include "analysis/sort.h"
#include "analysis/tail_sample.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STANDS_OUT_FROM 1.2

/* The rows of one host, copied together. */
struct host_rows {
	size_t cnt;
	uint64_t *latency_ns;
	double *weight;
	uint32_t *window; /* NULL: without windows */
	uint32_t *rows;   /* in the dataset */
};

static int host_rows__init(struct host_rows *rows, const struct dataset *dataset, uint32_t host)
{
	size_t cnt = dataset->hosts[host].row_cnt;

	rows->cnt = 0;
	rows->latency_ns = calloc(cnt + 1, sizeof(*rows->latency_ns));
	rows->weight = calloc(cnt + 1, sizeof(*rows->weight));
	rows->rows = calloc(cnt + 1, sizeof(*rows->rows));
	rows->window = dataset->window_cnt ? calloc(cnt + 1, sizeof(*rows->window)) : NULL;
	if (!rows->latency_ns || !rows->weight || !rows->rows || (dataset->window_cnt && !rows->window))
		return -ENOMEM;
	for (size_t row = 0; row < dataset->row_cnt && rows->cnt < cnt; row++) {
		if (dataset->host_idx[row] != host)
			continue;
		rows->latency_ns[rows->cnt] = dataset->latency_ns[row];
		rows->weight[rows->cnt] = dataset->weight[row];
		if (rows->window)
			rows->window[rows->cnt] = dataset->window[row];
		rows->rows[rows->cnt++] = row;
	}
	return 0;
}

static void host_rows__free(struct host_rows *rows)
{
	free(rows->latency_ns);
	free(rows->weight);
	free(rows->window);
	free(rows->rows);
}

/* All rows, from the largest down. */
struct host_order {
	const struct stats_order *order;
	struct sort_pair *pairs;
};

static long whole_order(void *ctx, double weight, const struct sort_pair **rows)
{
	const struct host_order *host = ctx;
	size_t cnt = host->order->cnt;

	(void)weight;
	for (size_t i = 0; i < cnt; i++) {
		uint32_t row = host->order->rows[cnt - 1 - i];

		host->pairs[i] = (struct sort_pair){.key = host->order->values[row], .row = row};
	}
	*rows = host->pairs;
	return (long)cnt;
}

/* By the block bootstrap: rows kept for being late, and rows of one window, are not independent. */
static int quantile_ci(struct ci *ci, const struct stats_order *order, const struct host_rows *host, double p,
		       const struct report_opts *opts)
{
	const struct share_rows rows = {
		.row_cnt = host->cnt,
		.latency_ns = host->latency_ns,
		.weights = host->weight,
		.windows = host->window,
		.late_ns = stats_quantile(order, p, NULL, NULL, order->total_weight),
	};
	uint32_t replicate_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : BOOTSTRAP_REPLICATES;
	struct host_order top = {order, calloc(host->cnt + 1, sizeof(*top.pairs))};
	double *values = calloc(replicate_cnt, sizeof(*values)), estimate;
	struct tail_set set = {.top = whole_order, .ctx = &top, .total_weight = order->total_weight, .p = p};
	struct tail_scratch scratch = {0};
	struct tail_blocks blocks = {0};
	struct tail_error error;
	int err = top.pairs && values ? tail_blocks__init(&blocks, &rows, replicate_cnt, opts->seed) : -ENOMEM;

	if (!err)
		err = tail_scratch__init(&scratch, &blocks);
	if (err)
		goto cleanup;
	error = tail_blocks__error(&blocks, &rows);
	set.block_weight = blocks.weight;
	set.margin = tail_error__margin(&error, host->cnt);
	err = tail_sample(&estimate, values, &set, &blocks, &scratch);
	if (!err)
		*ci = bootstrap_interval(values, replicate_cnt, estimate, blocks.blocks.cnt);
cleanup:
	tail_scratch__free(&scratch);
	tail_blocks__free(&blocks);
	free(top.pairs);
	free(values);
	return err;
}

static void add_means(struct host_line *line, const struct dataset *dataset, const struct host_rows *rows)
{
	double weight = 0, late_weight = 0;

	for (size_t i = 0; i < rows->cnt; i++) {
		bool late = (double)rows->latency_ns[i] >= line->tail_ns;

		weight += rows->weight[i];
		late_weight += late ? rows->weight[i] : 0;
		for (int c = 0; c < WL_CATEGORY_CNT; c++) {
			double ns = dataset->category_ns[c] ? (double)dataset->category_ns[c][rows->rows[i]] : 0;

			line->mean_ns[c] += rows->weight[i] * ns;
			line->late_ns[c] += late ? rows->weight[i] * ns : 0;
		}
	}
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		line->mean_ns[c] /= weight;
		line->late_ns[c] /= late_weight;
	}
}

static int describe_host(struct host_line *line, const struct dataset *dataset, uint32_t host,
			 const struct report_opts *opts)
{
	struct stats_order order = {0};
	struct host_rows rows = {0};
	int err = host_rows__init(&rows, dataset, host);

	*line = (struct host_line){.host = &dataset->hosts[host], .tail_ns = NAN, .peers_tail_ns = NAN};
	line->tail_ci = (struct ci){NAN, NAN};
	if (!err)
		err = stats_order__init(&order, rows.latency_ns, rows.weight, rows.cnt);
	if (err)
		goto cleanup;
	stats_summarize(&line->latency, &order);
	if (rows.cnt) {
		line->tail_ns = stats_quantile(&order, opts->tail, NULL, NULL, order.total_weight);
		err = quantile_ci(&line->tail_ci, &order, &rows, opts->tail, opts);
		add_means(line, dataset, &rows);
	}
cleanup:
	stats_order__free(&order);
	host_rows__free(&rows);
	return err;
}

/* Of all lines but one: what `of` says of each; NAN without any. */
static double median_of_peers(const struct report *report, const struct host_line *but, double *scratch,
			      double (*of)(const struct host_line *, int), int which)
{
	size_t cnt = 0;

	for (size_t i = 0; i < report->host_cnt; i++)
		if (&report->hosts[i] != but && !isnan(report->hosts[i].tail_ns))
			scratch[cnt++] = of(&report->hosts[i], which);
	if (!cnt)
		return NAN;
	qsort(scratch, cnt, sizeof(*scratch), compare_doubles);
	return (scratch[(cnt - 1) / 2] + scratch[cnt / 2]) / 2;
}

static double tail_of(const struct host_line *line, int which)
{
	(void)which;
	return line->tail_ns;
}

static double late_of(const struct host_line *line, int category)
{
	return line->late_ns[category];
}

static double late_total_of(const struct host_line *line, int which)
{
	double total = 0;

	(void)which;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		total += line->late_ns[c];
	return total;
}

static void compare_with_peers(struct report *report, struct host_line *line, double *scratch)
{
	double total;

	line->peers_tail_ns = median_of_peers(report, line, scratch, tail_of, 0);
	if (isnan(line->tail_ns) || isnan(line->peers_tail_ns))
		return;
	line->stands_out =
		line->tail_ns >= STANDS_OUT_FROM * line->peers_tail_ns && line->tail_ci.lo > line->peers_tail_ns;
	total = late_total_of(line, 0) - median_of_peers(report, line, scratch, late_total_of, 0);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		double more_ns = line->late_ns[c] - median_of_peers(report, line, scratch, late_of, c);

		if (more_ns <= line->differs_ns)
			continue;
		line->differs = c;
		line->differs_ns = more_ns;
		line->differs_share = total > 0 ? more_ns / total : NAN;
	}
}

ORDER(compare_lines, struct host_line, BY(isnan(a->tail_ns), isnan(b->tail_ns)), BY(b->tail_ns, a->tail_ns),
      strcmp(a->host->name, b->host->name));

/* One host has this value of the subject. */
struct fact {
	const char *subject, *value, *host;
};

ORDER(compare_facts, struct fact, strcmp(a->subject, b->subject), strcmp(a->value, b->value), strcmp(a->host, b->host));

/* The facts of one subject, sorted: a difference where there is more than one value. */
static int add_difference(struct report *report, struct arena *arena, const struct fact *facts, size_t cnt)
{
	struct host_difference *difference = &report->differences[report->difference_cnt];
	const char **hosts = arena__alloc(arena, cnt, sizeof(*hosts));

	*difference = (struct host_difference){.subject = facts[0].subject};
	difference->values = arena__alloc(arena, cnt, sizeof(*difference->values));
	if (!hosts || !difference->values)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct host_difference_value *value = &difference->values[difference->value_cnt];

		hosts[i] = facts[i].host;
		if (i && !strcmp(facts[i].value, facts[i - 1].value)) {
			value[-1].host_cnt++;
			continue;
		}
		*value = (struct host_difference_value){facts[i].value, &hosts[i], 1};
		difference->value_cnt++;
	}
	report->difference_cnt += difference->value_cnt > 1;
	return 0;
}

/* Whether a host has two values of its own, as one that was updated between two recordings. */
static int find_differences(struct report *report, struct arena *arena)
{
	const struct dataset *dataset = report->dataset;
	size_t room = dataset->module_cnt + dataset->host_cnt, cnt = 0;
	struct fact *facts = arena__alloc(arena, room, sizeof(*facts));
	int err = 0;

	report->differences = arena__alloc(arena, room, sizeof(*report->differences));
	if (!facts || !report->differences)
		return -ENOMEM;
	for (size_t i = 0; i < dataset->host_cnt; i++)
		if (dataset->hosts[i].kernel)
			facts[cnt++] = (struct fact){"kernel", dataset->hosts[i].kernel, dataset->hosts[i].name};
	for (size_t i = 0; i < dataset->module_cnt; i++) {
		const struct dataset_module *module = &dataset->modules[i];

		facts[cnt++] = (struct fact){module->path, module->build_id, dataset->hosts[module->host].name};
	}
	qsort(facts, cnt, sizeof(*facts), compare_facts);
	for (size_t from = 0, to; !err && from < cnt; from = to) {
		for (to = from + 1; to < cnt && !strcmp(facts[to].subject, facts[from].subject);)
			to++;
		err = add_difference(report, arena, facts + from, to - from);
	}
	return err;
}

int hosts_compare(struct report *report, const struct report_opts *opts, struct arena *arena)
{
	const struct dataset *dataset = report->dataset;
	double *scratch;

	if (dataset->host_cnt < 2)
		return 0;
	report->hosts = arena__alloc(arena, dataset->host_cnt, sizeof(*report->hosts));
	scratch = arena__alloc(arena, dataset->host_cnt, sizeof(*scratch));
	if (!report->hosts || !scratch)
		return -ENOMEM;
	report->host_cnt = dataset->host_cnt;
	for (size_t i = 0; i < report->host_cnt; i++)
		if (describe_host(&report->hosts[i], dataset, i, opts))
			return -ENOMEM;
	for (size_t i = 0; i < report->host_cnt; i++)
		compare_with_peers(report, &report->hosts[i], scratch);
	qsort(report->hosts, report->host_cnt, sizeof(*report->hosts), compare_lines);
	return find_differences(report, arena);
}
