// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare.h"

#include "analysis/compare_functions.h"
#include "analysis/compare_roots.h"
#include "analysis/sort.h"
#include "base/names.h"
#include "base/order.h"
#include "base/progress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLICATES  400
#define LEVEL       0.95
#define BLOCKS_MIN  5        /* fewer tell nothing of how they vary */
#define Z_POWER     0.841621 /* the normal's 80 % quantile: COMPARE_POWER */
#define Z_TWO_SIDED 1.959964

/* --- a list of differences that hold together ----------------------------------------------------------------------
 */

/* One of them: an estimate, and how many blocks it rests on. */
struct figure {
	struct compare_difference *to;
	double value; /* a difference; or the logarithm of a ratio */
	bool is_ratio;
	size_t block_cnt;
	double center[COMPARE_DRAW_CNT], error[COMPARE_DRAW_CNT]; /* of the replicates; NAN: too few blocks */
};

struct family {
	VEC(struct figure) figures;
	double *values[COMPARE_DRAW_CNT]; /* [figure][replicate] */
	size_t room;
	uint32_t replicate_cnt;
};

static int family__init(struct family *family, size_t room, uint32_t replicate_cnt)
{
	*family = (struct family){.room = room, .replicate_cnt = replicate_cnt};
	for (int d = 0; d < COMPARE_DRAW_CNT; d++) {
		family->values[d] = malloc((room * replicate_cnt + 1) * sizeof(double));
		if (!family->values[d])
			return -ENOMEM;
	}
	return 0;
}

static void family__free(struct family *family)
{
	for (int d = 0; d < COMPARE_DRAW_CNT; d++)
		free(family->values[d]);
	vec_free(&family->figures);
}

/* What a difference is of: a figure of either side, as a function of the side's figures. */
typedef double (*figure_fn)(const struct compare_figures *figures, size_t number);

static double log_ratio(double b, double a);

/* A difference of fn(…, number), or the logarithm of the ratio.  0 or -ENOMEM. */
static int family__add(struct family *family, struct compare_difference *to, const struct compare_sample *sample,
		       figure_fn fn, size_t number, bool is_ratio, size_t block_cnt)
{
	struct figure figure = {.to = to, .is_ratio = is_ratio, .block_cnt = block_cnt};
	double a = fn(&sample->figures[COMPARE_A], number), b = fn(&sample->figures[COMPARE_B], number);

	*to = (struct compare_difference){NAN, {NAN, NAN}, NAN, false};
	figure.value = is_ratio ? log_ratio(b, a) : b - a;
	if (family->figures.cnt == family->room || vec_push(&family->figures, figure))
		return -ENOMEM;
	for (int d = 0; d < COMPARE_DRAW_CNT; d++)
		for (uint32_t r = 0; r < family->replicate_cnt; r++) {
			a = fn(&sample->replicates[d][COMPARE_A][r], number);
			b = fn(&sample->replicates[d][COMPARE_B][r], number);
			family->values[d][(family->figures.cnt - 1) * family->replicate_cnt + r] =
				is_ratio ? log_ratio(b, a) : b - a;
		}
	return 0;
}

/* The standard error, with what resampling so few blocks lacks of it; NAN: there are too few. */
static void figure__spread(struct figure *figure, const double *values, uint32_t cnt, int draw)
{
	double sum = 0, squares = 0, blocks = (double)figure->block_cnt;
	uint32_t valid = 0;

	figure->error[draw] = figure->center[draw] = NAN;
	for (uint32_t r = 0; r < cnt; r++)
		if (isfinite(values[r])) {
			sum += values[r];
			valid++;
		}
	if (valid < cnt / 2 || figure->block_cnt < BLOCKS_MIN || !isfinite(figure->value))
		return;
	figure->center[draw] = draw == COMPARE_PERMUTATION ? 0 : sum / valid;
	for (uint32_t r = 0; r < cnt; r++)
		if (isfinite(values[r]))
			squares += pow(values[r] - figure->center[draw], 2);
	figure->error[draw] = sqrt(squares / valid * blocks / (blocks - 1));
}

/* The 95 % quantile of the largest |t| over the figures; at least that of a single one. */
static double critical(const struct family *family, int draw)
{
	double *largest = calloc(family->replicate_cnt + 1, sizeof(*largest)), value = Z_TWO_SIDED;

	if (!largest)
		return NAN;
	for (size_t f = 0; f < family->figures.cnt; f++) {
		const struct figure *figure = &family->figures.items[f];
		const double *values = family->values[draw] + f * family->replicate_cnt;

		if (!(figure->error[draw] > 0))
			continue;
		for (uint32_t r = 0; r < family->replicate_cnt; r++)
			if (isfinite(values[r]))
				largest[r] =
					fmax(largest[r], fabs(values[r] - figure->center[draw]) / figure->error[draw]);
	}
	qsort(largest, family->replicate_cnt, sizeof(*largest), compare_doubles);
	if (family->replicate_cnt)
		value = fmax(value, largest[(uint32_t)ceil(LEVEL * family->replicate_cnt) - 1]);
	free(largest);
	return value;
}

static double unlog(const struct figure *figure, double value)
{
	return figure->is_ratio ? expm1(value) : value;
}

static void figure__finish(struct figure *figure, const double limits[COMPARE_DRAW_CNT])
{
	double student = compare_student(figure->block_cnt - 1) / Z_TWO_SIDED;
	double error = fmax(figure->error[COMPARE_BOOTSTRAP], figure->error[COMPARE_PERMUTATION]);
	double half = fmax(limits[COMPARE_BOOTSTRAP] * student * figure->error[COMPARE_BOOTSTRAP],
			   limits[COMPARE_PERMUTATION] * figure->error[COMPARE_PERMUTATION]);

	figure->to->value = unlog(figure, figure->value);
	if (isnan(figure->error[COMPARE_BOOTSTRAP]) || isnan(figure->error[COMPARE_PERMUTATION]))
		return;
	figure->to->ci = (struct ci){unlog(figure, figure->value - half), unlog(figure, figure->value + half)};
	figure->to->detectable = unlog(figure, half + Z_POWER * error);
	figure->to->differs = figure->to->ci.lo > 0 || figure->to->ci.hi < 0;
}

static int family__finish(struct family *family)
{
	double limits[COMPARE_DRAW_CNT];

	for (int d = 0; d < COMPARE_DRAW_CNT; d++) {
		for (size_t f = 0; f < family->figures.cnt; f++)
			figure__spread(&family->figures.items[f], family->values[d] + f * family->replicate_cnt,
				       family->replicate_cnt, d);
		limits[d] = critical(family, d);
		if (isnan(limits[d]))
			return -ENOMEM;
	}
	for (size_t f = 0; f < family->figures.cnt; f++)
		figure__finish(&family->figures.items[f], limits);
	return 0;
}

static double log_ratio(double b, double a)
{
	return a > 0 && b > 0 ? log(b / a) : NAN;
}

/* How many blocks a figure rests on; 0: a side has too few rows beyond the quantile. */
static size_t fewest_blocks(const struct compare_sample *sample, int quantile)
{
	size_t least = SIZE_MAX;

	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		size_t cnt = sample->block_cnt[s];

		if (quantile >= 0 && sample->late_row_cnt[s][quantile] < BLOCKS_MIN)
			return 0;
		if (quantile >= 0 && cnt >= BLOCKS_MIN && sample->late_block_cnt[s][quantile] > BLOCKS_MIN)
			cnt = sample->late_block_cnt[s][quantile];
		else if (quantile >= 0 && cnt >= BLOCKS_MIN)
			cnt = BLOCKS_MIN;
		least = cnt < least ? cnt : least;
	}
	return least;
}

/*
 * Of a mean over late requests.  Where these are in few blocks, replicates consist of the same few requests and agree
 * on whatever those met, on each side and after a permutation.
 */
static size_t fewest_late_blocks(const struct compare_sample *sample)
{
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		if (sample->late_block_cnt[s][COMPARE_QUANTILE_CNT] < BLOCKS_MIN)
			return 0;
	return fewest_blocks(sample, COMPARE_QUANTILE_CNT);
}

/* --- latency -------------------------------------------------------------------------------------------------------
 */

static double metric_all(const struct compare_figures *figures, size_t metric)
{
	return metric ? figures->quantile_ns[metric - 1] : figures->mean_ns;
}

static double metric_like(const struct compare_figures *figures, size_t metric)
{
	return metric ? figures->like_quantile_ns[metric - 1] : figures->like_mean_ns;
}

static int compare_metrics(struct comparison *comparison, const struct compare_sample *sample, bool like)
{
	figure_fn fn = like ? metric_like : metric_all;
	struct family family;
	int err = family__init(&family, COMPARE_METRIC_CNT, sample->replicate_cnt);

	for (size_t m = 0; m < COMPARE_METRIC_CNT && !err; m++) {
		struct compare_metric *metric = &comparison->metrics[m];

		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			(like ? metric->like_ns : metric->ns)[s] = fn(&sample->figures[s], m);
		err = family__add(&family, like ? &metric->like : &metric->all, sample, fn, m, true,
				  fewest_blocks(sample, (int)m - 1));
	}
	if (!err)
		err = family__finish(&family);
	family__free(&family);
	return err;
}

/*
 * The intervals hold for all metrics together, so each that is clear of 0 is a difference, with a limit or without one:
 * in one comparison in twenty of equal sides there is any.  What exceeds is a question to the metrics with a limit.
 */
static void judge(struct comparison *comparison)
{
	bool worse = false, better = false, known = false;

	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++) {
		struct compare_metric *metric = &comparison->metrics[m];

		known = known || isfinite(metric->like.ci.lo);
		worse = worse || metric->like.ci.lo > 0;
		better = better || metric->like.ci.hi < 0;
		metric->exceeds = metric->like.ci.lo > metric->limit;
		comparison->exceeds = comparison->exceeds || metric->exceeds;
	}
	comparison->verdict = !known            ? COMPARE_UNKNOWN
			      : worse && better ? COMPARE_MIXED
			      : worse           ? COMPARE_WORSE
			      : better          ? COMPARE_BETTER
						: COMPARE_SAME;
}

/* --- types ---------------------------------------------------------------------------------------------------------
 */

ORDER(compare_type_lines, struct compare_type, BY(b->share[0] + b->share[1], a->share[0] + a->share[1]),
      strcmp(a->type, b->type));

static int share_types(struct comparison *comparison, const struct compare_sample *sample)
{
	const struct dataset *dataset = sample->dataset;
	struct compare_type *lines =
		arena__alloc(comparison->arena, dataset->string_cnt + 1, sizeof(*comparison->types));

	if (!lines)
		return -ENOMEM;
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		for (size_t i = 0; i < sample->row_cnt[s]; i++) {
			uint32_t row = sample->rows[sample->first_row[s] + i],
				 type = dataset->type ? dataset->type[row] : 0;

			lines[type].share[s] += dataset->weight[row] / comparison->weight[s];
			lines[type].type = dataset->string_cnt ? dataset->strings[type] : "";
			if (sample->stratum_of[type] != COMPARE_NO_STRATUM)
				comparison->like_share[s] += dataset->weight[row] / comparison->weight[s];
		}
	comparison->types = lines;
	return 0;
}

static double type_mean(const struct compare_figures *figures, size_t stratum)
{
	return figures->type_mean_ns[stratum];
}

static double type_tail(const struct compare_figures *figures, size_t stratum)
{
	return figures->type_tail_ns[stratum];
}

static int compare_types(struct comparison *comparison, const struct compare_sample *sample)
{
	struct family family;
	int err = family__init(&family, 2 * (size_t)sample->stratum_cnt, sample->replicate_cnt);

	if (!err)
		err = share_types(comparison, sample);
	for (uint32_t s = 0; s < sample->stratum_cnt && !err && sample->mixed; s++) {
		struct compare_type *line = &comparison->types[sample->stratum_types[s]];

		line->in_both = true;
		for (int side = 0; side < COMPARE_SIDE_CNT; side++) {
			line->mean_ns[side] = sample->figures[side].type_mean_ns[s];
			line->tail_ns[side] = sample->figures[side].type_tail_ns[s];
		}
		err = family__add(&family, &line->mean, sample, type_mean, s, true, fewest_blocks(sample, -1));
		if (!err)
			err = family__add(&family, &line->tail, sample, type_tail, s, true,
					  fewest_blocks(sample, COMPARE_QUANTILE_CNT));
	}
	if (!err)
		err = family__finish(&family);
	family__free(&family);
	for (size_t t = 0; t < sample->dataset->string_cnt && !err; t++)
		if (comparison->types[t].share[0] + comparison->types[t].share[1] > 0)
			comparison->types[comparison->type_cnt++] = comparison->types[t];
	if (comparison->type_cnt)
		qsort(comparison->types, comparison->type_cnt, sizeof(*comparison->types), compare_type_lines);
	return err;
}

/* --- parts of the latency ------------------------------------------------------------------------------------------
 */

static double size_of(const struct compare_line *line)
{
	double mean = fabs(line->mean_diff.value), late = fabs(line->late_diff.value);

	return isnan(late) ? mean : isnan(mean) ? late : fmax(mean, late);
}

static int compare_lines(const void *left, const void *right)
{
	const struct compare_line *a = left, *b = right;
	double of_a = size_of(a), of_b = size_of(b);

	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	return strcmp(a->name, b->name);
}

static double column_mean(const struct compare_figures *figures, size_t column)
{
	return figures->column_mean[column];
}

static double column_late(const struct compare_figures *figures, size_t column)
{
	return figures->column_late[column];
}

/* The columns from first on are lines[]; ratio: they are compared as such, and only their means. */
static int compare_list_lines(struct compare_list *list, const struct compare_sample *sample, size_t first, bool ratio)
{
	struct family family;
	int err = family__init(&family, 2 * list->cnt, sample->replicate_cnt);

	for (size_t i = 0; i < list->cnt && !err; i++) {
		struct compare_line *line = &list->lines[i];
		size_t c = first + i;

		for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
			line->mean[s] = sample->figures[s].column_mean[c];
			line->late[s] = ratio ? NAN : sample->figures[s].column_late[c];
		}
		line->late_diff = (struct compare_difference){NAN, {NAN, NAN}, NAN, false};
		err = family__add(&family, &line->mean_diff, sample, column_mean, c, ratio, fewest_blocks(sample, -1));
		if (!err && !ratio)
			err = family__add(&family, &line->late_diff, sample, column_late, c, false,
					  fewest_late_blocks(sample));
	}
	if (!err)
		err = family__finish(&family);
	family__free(&family);
	if (list->cnt)
		qsort(list->lines, list->cnt, sizeof(*list->lines), compare_lines);
	return err;
}

static int list_categories(struct comparison *comparison, struct compare_column *columns)
{
	const struct dataset *dataset = comparison->dataset;
	struct compare_list *list = &comparison->categories;

	list->lines = arena__alloc(comparison->arena, WL_CATEGORY_CNT, sizeof(*list->lines));
	if (!list->lines)
		return -ENOMEM;
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		if (dataset->category_unmeasured[c])
			continue;
		columns[list->cnt] = (struct compare_column){.values = dataset->category_ns[c]};
		list->lines[list->cnt++] = (struct compare_line){.name = category_name(c), .known = true};
	}
	return 0;
}

static int list_events(struct comparison *comparison, struct compare_column *columns)
{
	const struct dataset *dataset = comparison->dataset;
	struct compare_list *list = &comparison->events;

	list->lines = arena__alloc(comparison->arena, dataset->event_cnt + 1, sizeof(*list->lines));
	if (!list->lines)
		return -ENOMEM;
	for (size_t e = 0; e < dataset->event_cnt; e++) {
		const struct dataset_event *event = &dataset->events[e];

		if (!event->values)
			continue;
		columns[list->cnt] = (struct compare_column){
			.values = event->values,
			.missing = event->missing,
			.factor = event->missing ? dataset->hw_factor : NULL,
		};
		list->lines[list->cnt++] = (struct compare_line){.name = event->name, .known = true};
	}
	return 0;
}

/* --- all of it -----------------------------------------------------------------------------------------------------
 */

static void fill_sides(struct comparison *comparison, const struct compare_sample *sample)
{
	size_t width = sample->stratum_cnt + 1;

	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		size_t first = sample->first_block[s] * width, cnt = sample->block_cnt[s] * width;

		comparison->row_cnt[s] = sample->row_cnt[s];
		comparison->block_cnt[s] = sample->block_cnt[s];
		comparison->late_ns[s] = sample->late_ns[s];
		for (size_t c = first; c < first + cnt; c++)
			comparison->weight[s] += sample->weight[c];
	}
	comparison->mixed = sample->mixed;
}

/* Latencies, types and events, of all rows. */
static int compare_all(struct comparison *comparison, const uint8_t *sides, const struct compare_opts *opts)
{
	const struct dataset *dataset = comparison->dataset;
	struct compare_column *columns = calloc(dataset->event_cnt + 1, sizeof(*columns));
	struct compare_sample sample = {0};
	int err = columns ? list_events(comparison, columns) : -ENOMEM;

	if (!err)
		err = compare_sample__make(&sample, dataset, sides, columns, comparison->events.cnt, opts->tail,
					   opts->bootstrap_cnt, opts->seed);
	if (!err)
		fill_sides(comparison, &sample);
	if (!err)
		err = compare_metrics(comparison, &sample, false);
	if (!err)
		err = compare_metrics(comparison, &sample, true);
	if (!err)
		err = compare_types(comparison, &sample);
	if (!err)
		err = compare_list_lines(&comparison->events, &sample, 0, true);
	compare_sample__free(&sample);
	free(columns);
	return err;
}

/* Categories, roots and functions, of the rows whose critical path is known where paths were recorded. */
static int compare_parts(struct comparison *comparison, const uint8_t *sides, const struct compare_opts *opts)
{
	const struct dataset *dataset = comparison->dataset;
	struct compare_column columns[WL_CATEGORY_CNT + COMPARE_ROOTS_MAX + COMPARE_FUNCTIONS_MAX] = {0};
	struct compare_functions functions = {0};
	struct compare_roots roots = {0};
	struct compare_sample sample = {0};
	uint8_t *ranked = calloc(dataset->row_cnt + 1, sizeof(*ranked));
	int err = ranked ? list_categories(comparison, columns) : -ENOMEM;
	size_t first_root, first_function, cnt;
	bool both;

	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		ranked[row] = !opts->paths || opts->paths->ranked[row] ? sides[row] : 0;
	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			comparison->ranked_cnt[s] += (ranked[row] & (s ? COMPARE_IN_B : COMPARE_IN_A)) != 0;
	both = comparison->ranked_cnt[COMPARE_A] && comparison->ranked_cnt[COMPARE_B];
	if (!err && opts->roots && both)
		err = compare_roots__make(&roots, comparison, ranked, opts);
	if (!err && opts->roots && both)
		err = compare_functions__make(&functions, comparison, ranked, opts);
	first_root = comparison->categories.cnt;
	first_function = first_root + comparison->roots.cnt;
	cnt = first_function + comparison->functions.cnt;
	for (size_t l = 0; l < comparison->roots.cnt && !err; l++)
		columns[first_root + l].estimates = roots.columns[l];
	for (size_t l = 0; l < comparison->functions.cnt && !err; l++)
		columns[first_function + l].estimates = functions.columns[l];
	if (!err && both)
		err = compare_sample__make(&sample, dataset, ranked, columns, cnt, opts->tail, opts->bootstrap_cnt,
					   opts->seed);
	else
		comparison->categories.cnt = 0;
	if (!err && comparison->categories.cnt) {
		err = compare_list_lines(&comparison->functions, &sample, first_function, false);
		if (!err)
			err = compare_list_lines(&comparison->roots, &sample, first_root, false);
		if (!err)
			err = compare_list_lines(&comparison->categories, &sample, 0, false);
	}
	compare_sample__free(&sample);
	compare_functions__free(&functions);
	compare_roots__free(&roots);
	free(ranked);
	return err;
}

static void count_rows(struct comparison *comparison, const uint8_t *sides)
{
	for (size_t row = 0; row < comparison->dataset->row_cnt; row++) {
		comparison->row_cnt[COMPARE_A] += (sides[row] & COMPARE_IN_A) != 0;
		comparison->row_cnt[COMPARE_B] += (sides[row] & COMPARE_IN_B) != 0;
		comparison->both_cnt += sides[row] == (COMPARE_IN_A | COMPARE_IN_B);
	}
}

int comparison_make(struct comparison *comparison, const struct dataset *dataset, const uint8_t *sides,
		    const struct compare_opts *opts)
{
	static const char *const names[COMPARE_METRIC_CNT] = {"mean", "p50", "p90", "p99", "p99.9"};
	struct compare_opts own = *opts;
	int err;

	progress_at("comparing");
	*comparison = (struct comparison){.dataset = dataset, .tail = opts->tail};
	own.bootstrap_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : REPLICATES;
	count_rows(comparison, sides);
	if (!comparison->row_cnt[COMPARE_A] || !comparison->row_cnt[COMPARE_B])
		return -ENODATA;
	comparison->arena = arena__new();
	if (!comparison->arena)
		return -ENOMEM;
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++) {
		comparison->metrics[m].name = names[m];
		comparison->metrics[m].limit = opts->limits[m];
	}
	err = compare_all(comparison, sides, &own);
	if (!err)
		err = compare_parts(comparison, sides, &own);
	if (!err)
		judge(comparison);
	else
		comparison_free(comparison);
	return err;
}

void comparison_free(struct comparison *comparison)
{
	arena__free(comparison->arena);
	*comparison = (struct comparison){0};
}
