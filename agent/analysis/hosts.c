// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/hosts.h"

#include "analysis/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z_95            1.96
#define STANDS_OUT_FROM 1.2

/* The rows of one host, copied together. */
struct host_rows {
	size_t cnt;
	uint64_t *latency_ns;
	double *weight;
	uint32_t *rows; /* in the dataset */
};

static int host_rows__init(struct host_rows *rows, const struct dataset *dataset, uint32_t host)
{
	size_t cnt = dataset->hosts[host].row_cnt;

	rows->cnt = 0;
	rows->latency_ns = calloc(cnt + 1, sizeof(*rows->latency_ns));
	rows->weight = calloc(cnt + 1, sizeof(*rows->weight));
	rows->rows = calloc(cnt + 1, sizeof(*rows->rows));
	if (!rows->latency_ns || !rows->weight || !rows->rows)
		return -ENOMEM;
	for (size_t row = 0; row < dataset->row_cnt && rows->cnt < cnt; row++) {
		if (dataset->host_idx[row] != host)
			continue;
		rows->latency_ns[rows->cnt] = dataset->latency_ns[row];
		rows->weight[rows->cnt] = dataset->weight[row];
		rows->rows[rows->cnt++] = row;
	}
	return 0;
}

static void host_rows__free(struct host_rows *rows)
{
	free(rows->latency_ns);
	free(rows->weight);
	free(rows->rows);
}

static struct ci quantile_ci(const struct stats_order *order, double p)
{
	double squares = 0, effective, margin;
	struct ci ci;

	for (size_t i = 0; i < order->cnt; i++)
		squares += order->weights[i] * order->weights[i];
	effective = squares > 0 ? order->total_weight * order->total_weight / squares : 0;
	margin = effective > 0 ? Z_95 * sqrt(p * (1 - p) / effective) : 1;
	ci.lo = stats_quantile(order, fmax(p - margin, 0), NULL, NULL, order->total_weight);
	ci.hi = p + margin >= 1 ? (double)order->values[order->rows[order->cnt - 1]]
				: stats_quantile(order, p + margin, NULL, NULL, order->total_weight);
	return ci;
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

static int describe_host(struct host_line *line, const struct dataset *dataset, uint32_t host, double tail)
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
		line->tail_ns = stats_quantile(&order, tail, NULL, NULL, order.total_weight);
		line->tail_ci = quantile_ci(&order, tail);
		add_means(line, dataset, &rows);
	}
cleanup:
	stats_order__free(&order);
	host_rows__free(&rows);
	return err;
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
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

static int compare_lines(const void *a, const void *b)
{
	const struct host_line *x = a, *y = b;

	if (isnan(x->tail_ns) != isnan(y->tail_ns))
		return isnan(x->tail_ns) ? 1 : -1;
	if (x->tail_ns != y->tail_ns && !isnan(x->tail_ns))
		return x->tail_ns < y->tail_ns ? 1 : -1;
	return strcmp(x->host->name, y->host->name);
}

/* One host has this value of the subject. */
struct fact {
	const char *subject, *value, *host;
};

static int compare_facts(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;
	int order = strcmp(x->subject, y->subject) ?: strcmp(x->value, y->value);

	return order ?: strcmp(x->host, y->host);
}

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

int hosts_compare(struct report *report, struct arena *arena)
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
		if (describe_host(&report->hosts[i], dataset, i, report->tail))
			return -ENOMEM;
	for (size_t i = 0; i < report->host_cnt; i++)
		compare_with_peers(report, &report->hosts[i], scratch);
	qsort(report->hosts, report->host_cnt, sizeof(*report->hosts), compare_lines);
	return find_differences(report, arena);
}
