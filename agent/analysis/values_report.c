// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_fit.h"
#include "analysis/value_judge.h"
#include "analysis/value_stats.h"
#include "analysis/values.h"
#include "base/order.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Late and typical requests are divided into so many profiles each, for comparisons of ranks. */
#define FOLDS 5
/* So many of the most anomalous variables are looked at for an exponent. */
#define FITTED_VARIABLES 40
#define NOT_USED         UINT16_MAX
/* So many late requests say how values are distributed in them. */
#define LATE_WANTED 30
/* Where fewer were kept, requests that are so late as that, as a share of what the tail begins at, count, too. */
#define LATE_ENOUGH 0.5
/*
 * A tick makes its request longer, so the shorter half of short ones may have none: then requests that are later than
 * they by no more than that share of lateness are typical, too.
 */
#define TYPICAL_WANTED 30
#define TYPICAL_NEAR   0.1

struct maker {
	const struct values *values;
	struct arena *arena;
	VEC(struct value_row) rows;
	uint32_t tick_cnt;
	/* In one recording */
	const struct report *report;
	double late_ns;       /* NAN: there are two */
	struct idmap row_ids; /* (session, sid) → the dataset's row, by `row_indexes` */
	value_indexes row_indexes;
	struct idmap thread_ids; /* (session, tid) */
	bool keep_means;         /* in the report */
	uint16_t *profiles;      /* of each row of the dataset; NOT_USED: neither late nor typical */
	VEC(struct unit_mean) means;
};

/* The mean of a variable in one request. */
struct unit_mean {
	uint32_t variable, unit;
	double sum;
	uint32_t cnt;
};

/* --- the rows of one recording ------------------------------------------------------------------------------------ */

ORDER(compare_latencies, uint64_t, BY(*b, *a));

/*
 * From which latency on a request counts as late.  Of a short recording, or one that kept a part of all requests, the
 * tail is a handful, of which no test decides anything; the next ones, down to those half as late, are late by the
 * same.
 */
static int find_late(const struct report *report, double *late_ns)
{
	const struct dataset *dataset = report->dataset;
	double lateness = report->tail_threshold_ns - report->typical_ns;
	VEC(uint64_t) enough = {0};
	int err = 0;

	*late_ns = report->tail_threshold_ns;
	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		if ((double)dataset->latency_ns[row] - report->typical_ns >= LATE_ENOUGH * lateness)
			err = vec_push(&enough, dataset->latency_ns[row]) ? -ENOMEM : 0;
	vec_sort(&enough, compare_latencies);
	if (!err && enough.cnt)
		*late_ns = fmin(*late_ns,
				(double)enough.items[enough.cnt < LATE_WANTED ? enough.cnt - 1 : LATE_WANTED - 1]);
	vec_free(&enough);
	return err;
}

/* So many samples typical requests have. */
static size_t typical_samples(const struct maker *maker)
{
	const struct values *values = maker->values;
	size_t cnt = 0;
	uint32_t number;

	for (size_t i = 0; i < values->rows.cnt; i++) {
		const struct sampled_value *at = &values->rows.items[i];

		if (idmap__find(&maker->row_ids, values->session_ids.items[at->session], at->sid, &number))
			cnt += maker->profiles[maker->row_indexes.items[number]] < FOLDS;
	}
	return cnt;
}

static void widen_typical(struct maker *maker)
{
	const struct dataset *dataset = maker->report->dataset;
	double typical_ns = maker->report->typical_ns, upto_ns;

	upto_ns = typical_ns + TYPICAL_NEAR * (maker->late_ns - typical_ns);
	for (size_t row = 0; row < dataset->row_cnt; row++)
		if (maker->profiles[row] == NOT_USED && (double)dataset->latency_ns[row] <= upto_ns)
			maker->profiles[row] = (uint16_t)(random_mix(row) % FOLDS);
}

static int find_profiles(struct maker *maker)
{
	const struct dataset *dataset = maker->report->dataset;
	uint32_t number;

	if (find_late(maker->report, &maker->late_ns))
		return -ENOMEM;
	maker->profiles = malloc(dataset->row_cnt * sizeof(*maker->profiles) + 1);
	if (!maker->profiles)
		return -ENOMEM;
	for (size_t row = 0; row < dataset->row_cnt; row++) {
		bool late = (double)dataset->latency_ns[row] >= maker->late_ns;
		bool typical = (double)dataset->latency_ns[row] <= maker->report->typical_ns;
		uint32_t fold = (uint32_t)(random_mix(row) % FOLDS);

		/* Where all take equally long, none is late. */
		maker->profiles[row] = late && !typical ? (uint16_t)(FOLDS + fold)
				       : typical        ? (uint16_t)fold
							: NOT_USED;
		if (idmap__id(&maker->row_ids, dataset->session_ids[dataset->session[row]], dataset->sid[row], &number))
			return -ENOMEM;
		if (number == maker->row_indexes.cnt && vec_push(&maker->row_indexes, (uint32_t)row))
			return -ENOMEM;
	}
	if (typical_samples(maker) < TYPICAL_WANTED)
		widen_typical(maker);
	return 0;
}

/* What was sampled at one tick, as it counts for one request. */
static int add_tick(struct maker *maker, const struct sampled_value *values, size_t cnt, uint32_t row)
{
	const struct dataset *dataset = maker->report->dataset;
	uint32_t tick = maker->tick_cnt++, thread;

	if (idmap__id(&maker->thread_ids, values->session, values->tid, &thread))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct value_row made = {
			.ts = values[i].ts,
			.value = values[i].value,
			.weight = dataset->weight[row],
			.variable = values[i].variable,
			.place = values[i].place,
			.unit = row,
			.thread = thread,
			.tick = tick,
			.state = values[i].state,
			.profile = maker->profiles[row],
			.depth = values[i].depth,
			.turn = values[i].turn,
		};

		if (vec_push(&maker->rows, made))
			return -ENOMEM;
	}
	return 0;
}

static size_t tick_of(const struct values *values, size_t first)
{
	const struct sampled_value *rows = values->rows.items;
	size_t end = first + 1;

	while (end < values->rows.cnt && rows[end].session == rows[first].session && rows[end].tid == rows[first].tid &&
	       rows[end].ts == rows[first].ts)
		end++;
	return end;
}

/* Without chains: what each request's own threads held. */
static int add_own(struct maker *maker)
{
	const struct values *values = maker->values;
	int err = 0;

	for (size_t first = 0, end; first < values->rows.cnt && !err; first = end) {
		const struct sampled_value *at = &values->rows.items[first];
		uint32_t number;

		end = tick_of(values, first);
		if (at->sid && idmap__find(&maker->row_ids, values->session_ids.items[at->session], at->sid, &number))
			err = add_tick(maker, at, end - first, maker->row_indexes.items[number]);
	}
	return err;
}

/* With chains: what the request's thread and its blockers held on its critical path. */
static int add_of_roots(struct maker *maker, const struct roots *roots)
{
	int err = 0;

	for (size_t t = 0; t < roots->ticks.cnt && !err; t++) {
		const struct sample *sample = &roots->samples->rows.items[roots->ticks.items[t].sample];
		const struct sampled_value *values;
		size_t cnt;

		values = values_at(maker->values, sample->session_id, traces_real_id(sample->tid), sample->taken_ts,
				   &cnt);
		if (values)
			err = add_tick(maker, values, cnt, roots->entries.items[roots->ticks.items[t].entry].row);
	}
	return err;
}

/* --- means of requests, for the exponent -----------------------------------------------------------------------------
 */

ORDER(compare_means, struct unit_mean, BY(a->variable, b->variable), BY(a->unit, b->unit));

static int find_means(struct maker *maker)
{
	size_t kept = 0;

	for (size_t i = 0; i < maker->rows.cnt; i++) {
		const struct value_row *row = &maker->rows.items[i];
		const struct value_variable_facts *facts;
		double number;

		if (row->variable == VALUE_NONE)
			continue;
		facts = &maker->values->variables.items[row->variable].facts;
		number = value_number(facts, row->value);
		if (facts->kind == VALUE_POINTER || facts->kind == VALUE_BOOL || isnan(number))
			continue;
		if (vec_push(&maker->means, ((struct unit_mean){row->variable, row->unit, number, 1})))
			return -ENOMEM;
	}
	vec_sort(&maker->means, compare_means);
	for (size_t i = 0; i < maker->means.cnt; i++) {
		struct unit_mean *last = kept ? &maker->means.items[kept - 1] : NULL;

		if (last && !compare_means(last, &maker->means.items[i])) {
			last->sum += maker->means.items[i].sum;
			last->cnt++;
		} else {
			maker->means.items[kept++] = maker->means.items[i];
		}
	}
	maker->means.cnt = kept;
	return 0;
}

static int fit_variable(struct maker *maker, struct value_line *line, uint32_t variable, uint64_t seed)
{
	const struct dataset *dataset = maker->report->dataset;
	VEC(struct value_fit_point) points = {0};
	struct unit_mean key = {.variable = variable};
	struct value_fit fit = {NAN, {NAN, NAN}, NAN};
	size_t low = search_first(0, maker->means.cnt, mid, compare_means(&maker->means.items[mid], &key) >= 0);
	int err = 0;

	for (; low < maker->means.cnt && maker->means.items[low].variable == variable && !err; low++) {
		const struct unit_mean *mean = &maker->means.items[low];
		struct value_fit_point point = {mean->sum / mean->cnt, (double)dataset->latency_ns[mean->unit],
						dataset->weight[mean->unit]};

		err = vec_push(&points, point);
	}
	if (!err)
		err = value_fit(&fit, points.items, points.cnt, seed);
	if (!err) {
		line->exponent = fit.exponent;
		line->exponent_ci = fit.exponent_ci;
		line->explained = fit.explained;
	}
	vec_free(&points);
	return err;
}

/* Of the first lines, those of all requests. */
static int keep_means(struct maker *maker, struct value_report *report, const uint32_t *line_of)
{
	size_t cnt = 0;

	for (size_t i = 0; i < maker->means.cnt; i++)
		cnt += line_of[maker->means.items[i].variable] < FITTED_VARIABLES;
	report->means = arena__alloc(maker->arena, cnt, sizeof(*report->means));
	if (!report->means)
		return -ENOMEM;
	for (size_t i = 0; i < maker->means.cnt; i++) {
		const struct unit_mean *mean = &maker->means.items[i];
		uint32_t line = line_of[mean->variable];

		if (line < FITTED_VARIABLES)
			report->means[report->mean_cnt++] =
				(struct value_mean){line, mean->unit, mean->sum / mean->cnt};
	}
	return 0;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static const char *copy(struct arena *arena, const char *text, int *err)
{
	const char *made = text ? arena__strdup(arena, text) : NULL;

	if (text && !made)
		*err = -ENOMEM;
	return made;
}

static int fill_line(struct maker *maker, const struct value_ranking *ranking, uint32_t variable,
		     struct value_line *line)
{
	const struct sampled_variable *of = &maker->values->variables.items[variable];
	const struct value_verdict *verdict = &ranking->verdicts[variable];
	const struct sampled_place *place =
		verdict->places[0] == VALUE_NONE ? NULL : &maker->values->places.items[verdict->places[0]];
	int err = 0;

	*line = (struct value_line){
		.variable = copy(maker->arena, of->name, &err),
		.function = copy(maker->arena, of->function, &err),
		.inlined = copy(maker->arena, of->inlined, &err),
		.module = copy(maker->arena, of->module, &err),
		.file = copy(maker->arena, of->file, &err),
		.type = copy(maker->arena, of->type, &err),
		.line = of->line,
		.kind = of->facts.kind,
		.tags = of->facts.tags,
		.ratio = verdict->ratio,
		.dimension = (uint8_t)verdict->dimension,
		.typical_lo = verdict->normal_lo,
		.typical_hi = verdict->normal_hi,
		.late_median = verdict->slow_median,
		.beyond_share = verdict->beyond_share,
		.typical_cnt = verdict->normal_cnt,
		.late_cnt = verdict->slow_cnt,
		.where_function =
			place ? copy(maker->arena, maker->values->functions.items[place->function], &err) : NULL,
		.where_file = place ? copy(maker->arena, place->file, &err) : NULL,
		.where_line = place ? place->line : 0,
		.exponent = NAN,
		.explained = NAN,
		.exponent_ci = {NAN, NAN},
	};
	return err;
}

struct order {
	const struct value_verdict *verdicts;
	const struct values *values;
};

/* Anomalies first, values before addresses. */
static int compare_variables(const void *left, const void *right, void *owner)
{
	const struct order *order = owner;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct value_verdict *x = &order->verdicts[a], *y = &order->verdicts[b];
	bool of_x = order->values->variables.items[a].facts.kind == VALUE_POINTER,
	     of_y = order->values->variables.items[b].facts.kind == VALUE_POINTER;

	if (x->ratio != y->ratio)
		return x->ratio < y->ratio ? -1 : 1;
	if (of_x != of_y)
		return of_y ? -1 : 1;
	if (x->distance != y->distance)
		return x->distance > y->distance ? -1 : 1;
	if (x->slow_cnt != y->slow_cnt)
		return x->slow_cnt > y->slow_cnt ? -1 : 1;
	return (a > b) - (a < b);
}

/* `line_of`: of each variable its line in the report, VALUE_NONE: it has none. */
static int fill_variables(struct maker *maker, struct value_report *report, const struct value_ranking *ranking,
			  uint32_t *line_of)
{
	size_t variable_cnt = maker->values->variables.cnt, cnt = 0;
	struct order order = {ranking->verdicts, maker->values};
	uint32_t *sorted = malloc(variable_cnt * sizeof(*sorted) + 1);
	int err = sorted ? 0 : -ENOMEM;

	for (uint32_t v = 0; v < variable_cnt && !err; v++) {
		line_of[v] = VALUE_NONE;
		if (!isnan(ranking->verdicts[v].ratio))
			sorted[cnt++] = v;
	}
	if (!err)
		qsort_r(sorted, cnt, sizeof(*sorted), compare_variables, &order);
	report->variables = err ? NULL : arena__alloc(maker->arena, cnt, sizeof(*report->variables));
	if (!err && !report->variables)
		err = -ENOMEM;
	for (size_t i = 0; i < cnt && !err; i++) {
		line_of[sorted[i]] = (uint32_t)i;
		err = fill_line(maker, ranking, sorted[i], &report->variables[i]);
		if (!err && maker->report && i < FITTED_VARIABLES && ranking->verdicts[sorted[i]].is_anomalous)
			err = fit_variable(maker, &report->variables[i], sorted[i], i + 1);
		report->variable_cnt = i + 1;
	}
	free(sorted);
	return err;
}

static int fill_functions(struct maker *maker, struct value_report *report, const struct value_ranking *ranking,
			  const uint32_t *line_of)
{
	int err = 0;

	report->functions = arena__alloc(maker->arena, ranking->function_cnt, sizeof(*report->functions));
	if (!report->functions)
		return -ENOMEM;
	for (size_t f = 0; f < ranking->function_cnt && !err; f++) {
		const struct value_function *from = &ranking->functions[f];
		uint32_t line = from->variable == VALUE_NONE ? VALUE_NONE : line_of[from->variable];

		report->functions[report->function_cnt++] = (struct value_function_line){
			.function = copy(maker->arena, maker->values->functions.items[from->function], &err),
			.cost = from->cost,
			.pc_cost = from->pc_cost,
			.variable_cost = from->variable_cost,
			.ratio = from->ratio,
			.calibrated = from->calibrated,
			.by = from->by,
			.pattern = (uint8_t)from->pattern,
			.value = line == VALUE_NONE ? NULL : &report->variables[line],
		};
	}
	return err;
}

static int make(struct maker *maker, struct value_report **made, const bool *is_slow, size_t profile_cnt)
{
	const struct values *values = maker->values;
	struct value_variable_facts *facts = calloc(values->variables.cnt + 1, sizeof(*facts));
	uint32_t *bases = calloc(values->variables.cnt + 1, sizeof(*bases));
	uint32_t *functions = calloc(values->places.cnt + 1, sizeof(*functions));
	uint32_t *variable_modules = calloc(values->variables.cnt + 1, sizeof(*variable_modules));
	uint32_t *place_modules = calloc(values->places.cnt + 1, sizeof(*place_modules));
	uint32_t *line_of = malloc(values->variables.cnt * sizeof(*line_of) + 1);
	struct value_report *report = arena__alloc(maker->arena, 1, sizeof(*report));
	struct value_input input = {
		.variables = facts,
		.variable_cnt = values->variables.cnt,
		.bases = bases,
		.functions = functions,
		.variable_modules = variable_modules,
		.place_modules = place_modules,
		.function_cnt = values->functions.cnt,
		.rows = maker->rows.items,
		.row_cnt = maker->rows.cnt,
		.is_slow = is_slow,
		.profile_cnt = profile_cnt,
		.by_unit = maker->report != NULL,
		.is_recorded = values_is_recorded,
		.owner = values,
		.state_cnt = values->states.cnt,
	};
	struct value_ranking ranking;
	int err = facts && bases && functions && variable_modules && place_modules && line_of && report ? 0 : -ENOMEM;

	for (size_t v = 0; v < values->variables.cnt && !err; v++) {
		facts[v] = values->variables.items[v].facts;
		bases[v] = values->variables.items[v].base;
		variable_modules[v] = values->variables.items[v].module_id;
	}
	for (size_t p = 0; p < values->places.cnt && !err; p++) {
		functions[p] = values->places.items[p].function;
		place_modules[p] = values->places.items[p].module;
	}
	if (report)
		report->late_from_ns = maker->late_ns;
	if (!err)
		err = value_rank(&ranking, &input, maker->arena);
	for (size_t i = 0; i < maker->rows.cnt && !err; i++)
		if (maker->rows.items[i].variable != VALUE_NONE)
			*(is_slow[maker->rows.items[i].profile] ? &report->late_cnt : &report->typical_cnt) += 1;
	if (!err)
		err = fill_variables(maker, report, &ranking, line_of);
	if (!err)
		err = fill_functions(maker, report, &ranking, line_of);
	if (!err && maker->keep_means)
		err = keep_means(maker, report, line_of);
	free(line_of);
	free(facts);
	free(bases);
	free(functions);
	free(variable_modules);
	free(place_modules);
	*made = report;
	return err;
}

static void maker__free(struct maker *maker)
{
	vec_free(&maker->rows);
	vec_free(&maker->means);
	vec_free(&maker->row_indexes);
	idmap__free(&maker->row_ids);
	idmap__free(&maker->thread_ids);
	free(maker->profiles);
}

/* Rows of requests that are neither late nor typical tell how values and latencies go together, and no more. */
static void keep_used(struct maker *maker)
{
	size_t kept = 0;

	for (size_t i = 0; i < maker->rows.cnt; i++)
		if (maker->rows.items[i].profile != NOT_USED)
			maker->rows.items[kept++] = maker->rows.items[i];
	maker->rows.cnt = kept;
}

int values_report(struct report *report, const struct values *values, const struct report_opts *opts)
{
	static const bool is_slow[2 * FOLDS] = {[FOLDS] = true, true, true, true, true};
	struct maker maker = {
		.values = values, .arena = report->arena, .report = report, .keep_means = opts->keep_rows};
	const struct roots *roots = opts->roots;
	int err;

	if (!values->rows.cnt || !report->dataset->row_cnt || !report->dataset->sid || !report->dataset->session)
		return 0;
	err = find_profiles(&maker);
	if (!err)
		err = roots && roots->samples ? add_of_roots(&maker, roots) : add_own(&maker);
	if (!err)
		err = find_means(&maker);
	keep_used(&maker);
	if (!err)
		err = make(&maker, &report->values, is_slow, 2 * FOLDS);
	maker__free(&maker);
	return err ? err : values_name_cause(report);
}

int values_compare(struct value_report **report, const struct values *values, const bool *is_slow, struct arena *arena)
{
	struct maker maker = {.values = values, .arena = arena, .late_ns = NAN};
	int err = values->session_ids.cnt < NOT_USED ? 0 : -E2BIG;

	for (size_t first = 0, end; first < values->rows.cnt && !err; first = end) {
		uint32_t tick = maker.tick_cnt++;

		end = tick_of(values, first);
		for (size_t i = first; i < end && !err; i++) {
			const struct sampled_value *at = &values->rows.items[i];

			err = vec_push(&maker.rows, ((struct value_row){.ts = at->ts,
									.value = at->value,
									.weight = 1,
									.variable = at->variable,
									.place = at->place,
									.unit = at->tid,
									.thread = at->tid,
									.tick = tick,
									.state = at->state,
									.profile = (uint16_t)at->session,
									.depth = at->depth,
									.turn = at->turn}));
		}
	}
	if (!err)
		err = make(&maker, report, is_slow, values->session_ids.cnt);
	if (!err)
		(*report)->by_recording = true;
	maker__free(&maker);
	return err;
}
