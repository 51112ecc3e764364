// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/factors_report.h"

#include "analysis/factors_detail.h"
#include "analysis/stats.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t symbol_height(void *ctx, uint32_t func)
{
	const struct invocations *invocations = ctx;

	return invocations->symbols.items[func].height;
}

/*
 * Of the interval, the root of the call graph: one above the highest function that is known of, whichever of them a
 * round has probed.
 */
static uint32_t graph_height(const struct invocations *invocations)
{
	uint32_t height = invocations->graph_height;

	for (size_t i = 0; i < invocations->symbols.cnt; i++)
		if (invocations->symbols.items[i].height > height)
			height = invocations->symbols.items[i].height;
	return height + 1;
}

static int take_row(struct factor_analysis *analysis, uint32_t row)
{
	struct factor_walk *walk = &analysis->walk;
	int err = factor_walk__row(walk, row);

	if (err <= 0)
		return err;
	err = variance_tree__add(walk->tree, &walk->interval, walk->times.times.items, walk->times.times.cnt);
	if (err == -EINVAL) {
		analysis->impossible++;
		return 0;
	}
	err = err ? err : vec_push(&analysis->left_ns, walk->interval.latency_ns);
	return err ? err : vec_push(&analysis->rows, row);
}

static int take_out(struct factor_walk *walk, const factor_names *names)
{
	int found = 0;

	for (size_t i = 0; names && i < names->cnt && found >= 0; i++)
		found = factor_walk__take_out(walk, names->items[i]);
	return found < 0 ? found : 0;
}

/* samples NULL: calls. */
static int make_analysis(struct factor_analysis *analysis, const struct invocations *invocations,
			 const struct samples *samples, const struct dataset *dataset, const struct paths *paths,
			 uint32_t round)
{
	int err;

	if (dataset->row_cnt >= UINT32_MAX)
		return -E2BIG;
	err = factor_walk__init(&analysis->walk, invocations, dataset, paths, round);
	if (!err && samples)
		err = factor_walk__sample(&analysis->walk, samples);
	if (!err && analysis->whole)
		err = take_out(&analysis->walk, analysis->rule.understood);
	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		err = take_row(analysis, (uint32_t)row);
	if (err)
		return err;
	return factors_select(&analysis->factors, analysis->walk.tree, &analysis->rule, graph_height(invocations),
			      symbol_height, (void *)invocations);
}

int factor_analysis_make(struct factor_analysis *analysis, const struct invocations *invocations,
			 const struct dataset *dataset, const struct paths *paths, uint32_t round,
			 const struct factor_rule *rule, const struct factor_analysis *whole)
{
	*analysis = (struct factor_analysis){.rule = *rule, .whole = whole};
	return make_analysis(analysis, invocations, NULL, dataset, paths, round);
}

int factor_analysis_sample(struct factor_analysis *analysis, const struct invocations *functions,
			   const struct samples *samples, const struct dataset *dataset, const struct paths *paths,
			   const struct factor_rule *rule, const struct factor_analysis *whole)
{
	*analysis = (struct factor_analysis){.rule = *rule, .whole = whole};
	return make_analysis(analysis, functions, samples, dataset, paths, WALK_LAST_ROUND);
}

void factor_analysis_free(struct factor_analysis *analysis)
{
	factor_walk__free(&analysis->walk);
	factors_free(&analysis->factors);
	vec_free(&analysis->rows);
	vec_free(&analysis->left_ns);
}

/* The selected ones by rank, then others that are worth a line, by score. */
static uint32_t *choose_lines(const struct factors *factors, size_t *cnt, size_t *left_out)
{
	uint32_t *order = malloc((factors->list.cnt + 1) * sizeof(*order));
	size_t others = 0;

	*cnt = *left_out = 0;
	if (!order)
		return NULL;
	for (uint32_t f = 0; f < factors->list.cnt; f++)
		if (factors->list.items[f].rank)
			order[factors->list.items[f].rank - 1] = f;
	*cnt = factors->selected_cnt;
	for (uint32_t f = 0; f < factors->list.cnt; f++) {
		const struct factor *factor = &factors->list.items[f];

		if (factor->rank)
			continue;
		if (factor->contribution < FACTOR_LINE_MIN || others++ >= FACTOR_LINES_MAX)
			(*left_out)++;
		else
			order[(*cnt)++] = f;
	}
	return order;
}

static const char *caller_of(const struct invocations *invocations, const struct variance_tree *tree, uint32_t id)
{
	struct tree_node node, parent;

	variance_tree__node_at(tree, id, &node);
	if (node.part == TREE_BODY)
		variance_tree__node_at(tree, node.parent, &node);
	if (node.parent == TREE_ROOT || node.parent == TREE_NONE)
		return NULL;
	variance_tree__node_at(tree, node.parent, &parent);
	return invocations_name(invocations, parent.call.func);
}

ORDER(compare_sites, struct factor_site, BY(fabs(b->contribution), fabs(a->contribution)),
      BY(a->call_addr, b->call_addr));

/* The instances of a factor apart. */
static int fill_sites(struct factor_line *line, const struct factor_analysis *analysis, const struct factor *factor,
		      struct arena *arena)
{
	const struct variance_tree *tree = analysis->walk.tree;
	const struct factors *factors = &analysis->factors;
	size_t step = factor->funcs[1] == FACTOR_NONE ? 1 : 2, cnt = factor->instance_cnt / step;
	struct factor_site *sites = calloc(cnt + 1, sizeof(*sites));
	int err = sites ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++) {
		size_t at = factor->first_instance + i * step;
		uint32_t id = factors->instances.items[at];
		struct tree_node node;

		variance_tree__node_at(tree, id, &node);
		sites[i] = (struct factor_site){
			.caller = caller_of(analysis->walk.invocations, tree, id),
			.call_addr = analysis->walk.dataset->session_cnt > 1 ? 0 : node.call.call_addr,
			.contribution = factors->terms.items[at],
		};
	}
	if (!err && cnt)
		qsort(sites, cnt, sizeof(*sites), compare_sites);
	line->site_cnt = cnt < FACTOR_SITES_MAX ? cnt : FACTOR_SITES_MAX;
	line->sites = err ? NULL : arena__alloc(arena, line->site_cnt, sizeof(*line->sites));
	for (size_t i = 0; line->sites && i < line->site_cnt; i++) {
		line->sites[i] = sites[i];
		if (sites[i].caller && !(line->sites[i].caller = arena__strdup(arena, sites[i].caller)))
			err = -ENOMEM;
	}
	free(sites);
	return line->sites ? err : -ENOMEM;
}

/* The strings go with the invocations: the report gets its own. */
static int fill_line(struct factor_line *line, const struct factor_analysis *analysis, const struct factor *factor,
		     struct arena *arena)
{
	const struct invocations *invocations = analysis->walk.invocations;
	const char *caller = caller_of(invocations, analysis->walk.tree, factor->biggest);
	bool pair = factor->funcs[1] != FACTOR_NONE;
	const struct ci none = {NAN, NAN};

	*line = (struct factor_line){
		.body = {factor->body[0], factor->body[1]},
		.rank = factor->rank,
		.contribution = factor->contribution,
		.contribution_ci = none,
		.height = factor->height,
		.score = factor->score,
		.call_sites = factor->call_sites,
		.opened = factor->opened,
		.variance_share = pair ? NAN : factor->variance_share,
		.tail_share = NAN,
		.variance_share_ci = none,
		.tail_share_ci = none,
		.mean_ns = pair ? NAN : factor->mean_ns,
		.typical_ns = NAN,
		.late_ns = NAN,
		.calls = pair || analysis->walk.samples ? NAN : factor->calls,
		.sampled = analysis->walk.samples != NULL,
		.late_met = NAN,
		.wait = WL_CATEGORY_OTHER,
		.wait_share = NAN,
		.object_share = NAN,
		.culprit_share = NAN,
	};
	for (int i = 0; i < (pair ? 2 : 1); i++) {
		const struct invocation_symbol *symbol = &invocations->symbols.items[factor->funcs[i]];

		line->functions[i] = arena__strdup(arena, invocations_name(invocations, factor->funcs[i]));
		line->modules[i] = arena__strdup(arena, invocations_string(invocations, symbol->module));
		line->symbols[i] = symbol->id;
		if (!line->functions[i] || !line->modules[i])
			return -ENOMEM;
	}
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		enum factor_doing as = d == TREE_RUNNING       ? FACTOR_RUNNING
				       : d == TREE_RUNNABLE    ? FACTOR_RUNNABLE
				       : d == TREE_INTERRUPTED ? FACTOR_INTERRUPTED
							       : FACTOR_BLOCKED;

		line->doing_share[as] += pair ? NAN : factor->doing_share[d];
		line->doing_contribution[as] += pair ? NAN : factor->doing_contribution[d];
	}
	if (caller && !(line->caller = arena__strdup(arena, caller)))
		return -ENOMEM;
	return fill_sites(line, analysis, factor, arena);
}

static int fill_rounds(struct factor_report *to, const struct factor_analysis *analysis, struct arena *arena)
{
	const struct invocations *invocations = analysis->walk.invocations;

	to->rounds = arena__alloc(arena, invocations->rounds.cnt, sizeof(*to->rounds));
	if (!to->rounds)
		return -ENOMEM;
	/* Of several recordings the rounds are no one story. */
	for (size_t i = 0; analysis->walk.dataset->session_cnt == 1 && i < invocations->rounds.cnt; i++) {
		const struct invocation_round *round = &invocations->rounds.items[i];

		if (round->end_ts <= round->begin_ts)
			continue;
		to->rounds[to->round_cnt++] = (struct round_line){
			.number = round->number,
			.duration_s = (double)(round->end_ts - round->begin_ts) / 1e9,
			.probes = round->probe_cnt,
			.intervals_per_s = round->intervals_per_s,
			.cost_share = round->cost_share,
		};
		to->round = round->number;
	}
	return 0;
}

static int fill_unmeasured(struct factor_report *to, const struct factor_analysis *analysis, struct arena *arena)
{
	const struct invocations *invocations = analysis->walk.invocations;
	size_t cnt = invocations->parts.cnt;

	to->unmeasured = arena__alloc(arena, cnt, sizeof(*to->unmeasured));
	if (!to->unmeasured)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct invocation_part *part = &invocations->parts.items[i];
		const struct invocation_symbol *symbol = &invocations->symbols.items[part->func];
		struct unmeasured_line *line = &to->unmeasured[to->unmeasured_cnt++];

		line->function = arena__strdup(arena, invocations_name(invocations, part->func));
		line->module = arena__strdup(arena, invocations_string(invocations, symbol->module));
		line->why = part->why;
		line->after_s = part->end_ts > part->begin_ts ? (double)(part->end_ts - part->begin_ts) / 1e9 : 0;
		if (!line->function || !line->module)
			return -ENOMEM;
	}
	return 0;
}

/* The rows that took part, as shares.h wants them, with thresholds of their own. */
static int part_rows(struct share_rows *part, const struct factor_analysis *analysis, double tail)
{
	const struct dataset *dataset = analysis->walk.dataset;
	size_t cnt = analysis->rows.cnt;
	uint64_t *latency_ns = malloc((cnt + 1) * sizeof(*latency_ns));
	double *weights = malloc((cnt + 1) * sizeof(*weights));
	uint32_t *windows = dataset->window_cnt ? malloc((cnt + 1) * sizeof(*windows)) : NULL;
	struct stats_order order = {0};
	int err;

	*part = (struct share_rows){.latency_ns = latency_ns, .weights = weights, .windows = windows};
	if (!latency_ns || !weights || (dataset->window_cnt && !windows))
		return -ENOMEM;
	part->row_cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		latency_ns[i] = analysis->left_ns.items[i];
		weights[i] = dataset->weight[analysis->rows.items[i]];
		if (windows)
			windows[i] = dataset->window[analysis->rows.items[i]];
	}
	err = stats_order__init(&order, latency_ns, weights, cnt);
	if (!err) {
		part->median_ns = stats_quantile(&order, fmin(0.5, tail), NULL, NULL, order.total_weight);
		part->late_ns = stats_quantile(&order, tail, NULL, NULL, order.total_weight);
	}
	stats_order__free(&order);
	return err;
}

static void part_rows_free(struct share_rows *part)
{
	free((void *)part->latency_ns);
	free((void *)part->weights);
	free((void *)part->windows);
}

static int fill_understood(struct factor_report *to, const struct factor_analysis *analysis, struct arena *arena)
{
	const factor_names *names = analysis->rule.understood;
	const struct factor_analysis *whole = analysis->whole;

	to->left_share =
		whole->factors.variance_ns2 > 0 ? analysis->factors.variance_ns2 / whole->factors.variance_ns2 : NAN;
	to->understood = arena__alloc(arena, names->cnt, sizeof(*to->understood));
	if (!to->understood)
		return -ENOMEM;
	for (size_t i = 0; i < names->cnt; i++) {
		struct understood_line *line = &to->understood[to->understood_cnt++];

		*line = (struct understood_line){.function = arena__strdup(arena, names->items[i]),
						 .contribution = NAN};
		if (!line->function)
			return -ENOMEM;
		for (size_t f = 0; f < whole->factors.list.cnt; f++) {
			const struct factor *factor = &whole->factors.list.items[f];
			const char *name = invocations_name(whole->walk.invocations, factor->funcs[0]);
			bool body;

			if (factor->funcs[1] != FACTOR_NONE || !factor_is_named(line->function, name, &body) ||
			    body != factor->body[0])
				continue;
			line->contribution = factor->contribution;
			line->call_sites = factor->call_sites;
		}
	}
	return 0;
}

static int fill_report(struct report *report, struct factor_analysis *analysis, const struct blame_split *splits,
		       const struct report_opts *opts, cause_places_table *places)
{
	struct factor_report *to = arena__alloc(report->arena, 1, sizeof(*to));
	const struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed,
					      shares_lost_bound(report->records_lost_share, opts->tail)};
	struct share_rows rows = {0};
	uint32_t *order = NULL;
	int err;

	if (!to)
		return -ENOMEM;
	report->factors = to;
	*to = (struct factor_report){
		.selected_cnt = analysis->factors.selected_cnt,
		.graph_height = analysis->factors.graph_height,
		.exponent = analysis->rule.e,
		.body_share = analysis->factors.body_share,
		.queue_share = analysis->factors.queue_share,
		.intervals = analysis->rows.cnt,
		.lossy = analysis->walk.lossy,
		.sampled = analysis->walk.samples != NULL,
		.ticks = analysis->walk.samples ? analysis->walk.samples->ticks : 0,
		.waits = analysis->walk.samples ? analysis->walk.samples->waits : 0,
		.calls = analysis->walk.invocations->call_cnt,
		.orphans = analysis->walk.invocations->orphans,
		.bad_rows = analysis->walk.invocations->bad_rows + analysis->impossible,
	};
	err = fill_rounds(to, analysis, report->arena);
	if (!err && analysis->whole)
		err = fill_understood(to, analysis, report->arena);
	if (!err)
		err = fill_unmeasured(to, analysis, report->arena);
	if (!err)
		err = part_rows(&rows, analysis, opts->tail);
	if (!err)
		order = choose_lines(&analysis->factors, &to->line_cnt, &to->left_out);
	to->lines = order ? arena__alloc(report->arena, to->line_cnt, sizeof(*to->lines)) : NULL;
	if (!err && !to->lines)
		err = -ENOMEM;
	for (size_t i = 0; i < to->line_cnt && !err; i++)
		err = fill_line(&to->lines[i], analysis, &analysis->factors.list.items[order[i]], report->arena);
	if (!err)
		err = factors_detail(report, analysis, order, &rows, splits, &share_opts, places);
	part_rows_free(&rows);
	free(order);
	return err;
}

/* The lines of `from` for functions that were not probed: what samples tell of the others is less exact. */
static int append_sampled(struct factor_report *to, const struct factor_report *from, const struct invocations *probed,
			  struct arena *arena)
{
	struct factor_line *lines = arena__alloc(arena, to->line_cnt + from->line_cnt, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < to->line_cnt; i++)
		lines[i] = to->lines[i];
	for (size_t i = 0; i < from->line_cnt; i++) {
		bool known = false;

		for (uint32_t func = 0; func < probed->symbols.cnt && !known; func++)
			for (int part = 0; part < 2 && from->lines[i].functions[part] && !known; part++)
				known = !strcmp(from->lines[i].functions[part], invocations_name(probed, func));
		if (known)
			continue;
		lines[to->line_cnt] = from->lines[i];
		/* Ranks are those of one tree. */
		lines[to->line_cnt++].rank = 0;
	}
	to->lines = lines;
	to->ticks = from->ticks;
	to->waits = from->waits;
	return 0;
}

/* Of one tree, with what is understood taken out or not. */
static int report_of(struct report *report, struct factor_analysis *analysis, const struct blame_split *splits,
		     const struct report_opts *opts, cause_places_table *places)
{
	cause_places_table *unused;
	int err;

	if (!analysis->whole)
		return fill_report(report, analysis, splits, opts, places);
	/* Causes are those of whole requests, and were spent in functions that are understood, too. */
	unused = calloc(1, sizeof(*unused));
	err = unused ? fill_report(report, (struct factor_analysis *)analysis->whole, splits, opts, places) : -ENOMEM;
	if (!err)
		err = fill_report(report, analysis, splits, opts, unused);
	free(unused);
	return err;
}

int factors_report(struct report *report, const struct blame_split *splits, const struct report_opts *opts,
		   cause_places_table *places)
{
	const struct factor_report *sampled;
	cause_places_table *unused;
	int err;

	if (!opts->factors)
		return report_of(report, opts->sampled, splits, opts, places);
	if (!opts->sampled)
		return report_of(report, opts->factors, splits, opts, places);
	unused = calloc(1, sizeof(*unused));
	err = unused ? report_of(report, opts->sampled, splits, opts, unused) : -ENOMEM;
	free(unused);
	sampled = report->factors;
	if (!err)
		err = report_of(report, opts->factors, splits, opts, places);
	return err ? err : append_sampled(report->factors, sampled, opts->factors->walk.invocations, report->arena);
}
