// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/metrics_read.h"

#include "analysis/findings.h"
#include "base/idmap.h"
#include "view/export_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAIL          0.99
#define BOOTSTRAP_CNT 20 /* no interval of confidence is printed */

/* The newest totals of each recording. */
struct cost_of {
	double agent_ns, bpf_ns, target_ns;
};

static const struct shard_block_column *text_column(const struct shard_block *block, const char *name)
{
	const struct shard_block_column *column = shard_block__column(block, name);

	return column && column->type == SHARD_STR && !column->nulls ? column : NULL;
}

static void take(struct cost_of *cost, const char *key, const char *value)
{
	double number = strtod(value, NULL);

	if (!isfinite(number) || number < 0)
		return;
	if (!strcmp(key, "cost_agent_ns"))
		cost->agent_ns = number;
	else if (!strcmp(key, "cost_bpf_ns"))
		cost->bpf_ns = number;
	else if (!strcmp(key, "target_cpu_ns"))
		cost->target_ns = number;
}

static double plus(double sum, double value)
{
	return isnan(value) ? sum : isnan(sum) ? value : sum + value;
}

static int read_cost(struct shard_reader *reader, struct metrics_cost *sum)
{
	static const char *const tables[] = {"session"};
	VEC(struct cost_of) costs = {0};
	struct idmap ids = {0};
	const struct shard_block *block;
	int ret = shard_reader__select(reader, tables, 1);

	while (!ret && (ret = shard_reader__next(reader, &block)) > 0) {
		const struct shard_block_column *key = text_column(block, "key"), *value = text_column(block, "value");
		uint32_t cnt = ids.cnt, no;

		ret = idmap__id(&ids, block->session_id, 0, &no);
		if (!ret && no == cnt)
			ret = vec_push(&costs, ((struct cost_of){NAN, NAN, NAN}));
		for (uint32_t i = 0; !ret && key && value && i < block->row_cnt; i++)
			take(&costs.items[no], key->values[i].str, value->values[i].str);
	}
	*sum = (struct metrics_cost){NAN, NAN, NAN};
	for (size_t i = 0; i < costs.cnt; i++) {
		sum->agent_ns = plus(sum->agent_ns, costs.items[i].agent_ns);
		sum->bpf_ns = plus(sum->bpf_ns, costs.items[i].bpf_ns);
		sum->target_ns = plus(sum->target_ns, costs.items[i].target_ns);
	}
	vec_free(&costs);
	idmap__free(&ids);
	return ret;
}

int export_metrics_of(FILE *out, struct shard_reader *reader, bool openmetrics)
{
	const struct findings_opts opts = {.tail = TAIL, .rule = FACTOR_RULE_DEFAULT, .bootstrap_cnt = BOOTSTRAP_CNT};
	struct findings *findings = calloc(1, sizeof(*findings));
	struct metrics_cost cost;
	int err = findings ? findings_make(findings, reader, &opts) : -ENOMEM;

	if (!err) {
		err = read_cost(reader, &cost);
		if (!err)
			err = export_metrics(out, &findings->report, &cost, openmetrics);
		findings_free(findings);
	}
	free(findings);
	return err;
}
