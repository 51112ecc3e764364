// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/path_rows.h"
#include "analysis/roots.h"
#include "analysis/story.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every line costs a column of all intervals: the rest share one. */
#define LINES_MAX     24
#define CROSSTALK_MAX 32

struct weighed_key {
	uint32_t key;
	bool by_recorder; /* after all others: it is never ranked */
	double tail_ns;
};

ORDER(compare_keys, struct weighed_key, BY(a->by_recorder, b->by_recorder), BY(b->tail_ns, a->tail_ns),
      BY(a->key, b->key));

/* The keys in which late and typical intervals differ most, largest difference first, of either sign. */
static struct weighed_key *weigh_keys(const struct paths *paths, const struct path_rows *ranked)
{
	struct weighed_key *weighed = calloc(paths->keys.cnt + 1, sizeof(*weighed));

	if (!weighed)
		return NULL;
	for (size_t k = 0; k < paths->keys.cnt; k++)
		weighed[k] = (struct weighed_key){(uint32_t)k, paths->keys.items[k].by_recorder, 0};
	for (size_t i = 0; i < paths->entries.cnt; i++) {
		const struct path_entry *entry = &paths->entries.items[i];
		uint32_t at = ranked->at[entry->row];
		double ns = ranked->weights[at] * (double)entry->ns, latency_ns = (double)ranked->latency_ns[at];

		if (latency_ns >= ranked->rows.late_ns && ranked->late_weight > 0)
			weighed[entry->key].tail_ns += ns / ranked->late_weight;
		if (latency_ns <= ranked->rows.median_ns && ranked->typical_weight > 0)
			weighed[entry->key].tail_ns -= ns / ranked->typical_weight;
	}
	for (size_t k = 0; k < paths->keys.cnt; k++)
		weighed[k].tail_ns = fabs(weighed[k].tail_ns);
	qsort(weighed, paths->keys.cnt, sizeof(*weighed), compare_keys);
	return weighed;
}

static void fill_line(struct path_line *line, const struct path_key *key, const struct dataset *dataset)
{
	double all_ns = 0, most_ns = -1;

	*line = (struct path_line){
		.role = dataset_text(dataset, key->role),
		.category = key->category,
		.wait = key->wait,
		.object = dataset_text(dataset, key->object),
		.culprit_comm = dataset_text(dataset, key->who),
		.culprit_host = dataset_text(dataset, key->host),
		.culprit_pid = blame_ids__only(&key->pids),
		.culprit_tid = blame_ids__only(&key->tids),
		.doing = key->category,
	};
	if (!key->own && !line->role)
		line->role = "?";
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		all_ns += key->doing_ns[c];
		if (key->doing_ns[c] > most_ns) {
			most_ns = key->doing_ns[c];
			line->doing = (enum wl_category)c;
		}
	}
	line->doing_share = all_ns > 0 ? most_ns / all_ns : NAN;
}

static void fill_shares(struct path_line *line, const struct share_line *from)
{
	line->mean_ns = from->mean_ns;
	line->typical_ns = from->typical_ns;
	line->late_ns = from->late_ns;
	line->late_met = from->late_met;
	line->variance_share = from->variance_share;
	line->variance_share_ci = from->variance_share_ci;
	line->tail_share = from->tail_share;
	line->tail_share_ci = from->tail_share_ci;
}

ORDER(compare_lines, struct path_line,
      isnan(a->tail_share) || isnan(b->tail_share) ? BY(b->mean_ns, a->mean_ns) : BY(b->tail_share, a->tail_share),
      BY(a->category, b->category));

static int make_lines(struct report *report, const struct paths *paths, struct path_rows *ranked,
		      const struct report_opts *opts)
{
	struct share_opts share_opts = {opts->bootstrap_cnt, opts->seed, 0};
	struct path_report *path = report->path;
	struct share_part parts[LINES_MAX + 1] = {{0}};
	struct weighed_key *weighed = weigh_keys(paths, ranked);
	size_t cnt = 0, rows = ranked->rows.row_cnt;
	uint32_t *line_of = malloc((paths->keys.cnt + 1) * sizeof(*line_of));
	uint64_t *columns;
	int err = -ENOMEM;

	while (weighed && cnt < paths->keys.cnt && cnt < LINES_MAX && !weighed[cnt].by_recorder)
		cnt++;
	columns = calloc((cnt + 1) * rows + 1, sizeof(*columns));
	path->lines = arena__alloc(report->arena, cnt, sizeof(*path->lines));
	if (!weighed || !line_of || !columns || !path->lines)
		goto cleanup;
	for (size_t k = 0; k < paths->keys.cnt; k++)
		line_of[weighed[k].key] = (uint32_t)(k < cnt ? k : cnt);
	for (size_t i = 0; i < paths->entries.cnt; i++) {
		const struct path_entry *entry = &paths->entries.items[i];

		columns[line_of[entry->key] * rows + ranked->at[entry->row]] += entry->ns;
	}
	for (size_t l = 0; l <= cnt; l++)
		parts[l] = (struct share_part){.values = columns + l * rows, .slot_cnt = 1};
	share_opts.lost = shares_lost_bound(report->records_lost_share, opts->tail);
	err = shares_compute(parts, cnt + 1, &ranked->rows, &share_opts);
	if (err)
		goto cleanup;
	for (size_t l = 0; l < cnt; l++) {
		fill_line(&path->lines[l], &paths->keys.items[weighed[l].key], report->dataset);
		fill_shares(&path->lines[l], &parts[l].total);
	}
	path->rest = (struct path_line){.category = WL_CATEGORY_OTHER, .culprit_pid = -1, .culprit_tid = -1};
	fill_shares(&path->rest, &parts[cnt].total);
	path->line_cnt = cnt;
	qsort(path->lines, cnt, sizeof(*path->lines), compare_lines);
cleanup:
	free(columns);
	free(line_of);
	free(weighed);
	return err;
}

ORDER(compare_crosstalk, struct crosstalk_line, BY(b->mean_ns * b->count, a->mean_ns * a->count),
      strcmp(a->type, b->type));

static int make_crosstalk(struct report *report, const struct paths *paths)
{
	const struct dataset *dataset = report->dataset;
	struct path_report *path = report->path;
	double *latency_ns = calloc(dataset->string_cnt + 1, sizeof(*latency_ns));

	path->crosstalk = arena__alloc(report->arena, paths->crossings.cnt, sizeof(*path->crosstalk));
	if (!latency_ns || !path->crosstalk) {
		free(latency_ns);
		return -ENOMEM;
	}
	for (size_t row = 0; row < paths->row_cnt; row++)
		if (paths->ranked[row])
			latency_ns[dataset->type[row]] += dataset->weight[row] * (double)dataset->latency_ns[row];
	for (size_t i = 0; i < paths->crossings.cnt; i++) {
		const struct path_crossing *crossing = &paths->crossings.items[i];
		double all_ns = latency_ns[crossing->type];

		path->crosstalk[i] = (struct crosstalk_line){
			.type = dataset->strings[crossing->type],
			.by_type = dataset_text(dataset, crossing->by_type),
			.count = crossing->count,
			.mean_ns = crossing->count > 0 ? crossing->wait_ns / crossing->count : NAN,
			.share = all_ns > 0 ? crossing->wait_ns / all_ns : NAN,
		};
	}
	path->crosstalk_cnt = paths->crossings.cnt;
	qsort(path->crosstalk, path->crosstalk_cnt, sizeof(*path->crosstalk), compare_crosstalk);
	if (path->crosstalk_cnt > CROSSTALK_MAX)
		path->crosstalk_cnt = CROSSTALK_MAX;
	free(latency_ns);
	return 0;
}

/* The slowest that are ranked, slowest first; a tie goes to the earlier one. */
static size_t choose_slowest(const struct report *report, const struct paths *paths, uint32_t *rows, size_t max)
{
	const uint64_t *latency_ns = report->dataset->latency_ns;
	size_t cnt = 0, at;

	for (size_t row = 0; max && row < paths->row_cnt; row++) {
		if (!paths->ranked[row] || (cnt == max && latency_ns[row] <= latency_ns[rows[cnt - 1]]))
			continue;
		for (at = cnt < max ? cnt++ : cnt - 1; at && latency_ns[rows[at - 1]] < latency_ns[row]; at--)
			rows[at] = rows[at - 1];
		rows[at] = (uint32_t)row;
	}
	return cnt;
}

static int tell_slowest(struct report *report, const struct paths *paths, const struct samples *samples, size_t max)
{
	uint32_t *rows = malloc((max + 1) * sizeof(*rows));
	size_t cnt = rows ? choose_slowest(report, paths, rows, max) : 0;
	struct path path = {0};
	int err = 0;

	report->path->slowest = arena__alloc(report->arena, cnt, sizeof(*report->path->slowest));
	if (!rows || !report->path->slowest)
		err = -ENOMEM;
	for (size_t i = 0; i < cnt && !err; i++)
		err = story_make(&report->path->slowest[i], paths->traces, samples,
				 &paths->traces->intervals.items[paths->interval_of[rows[i]]], &path, report->arena);
	report->path->slowest_cnt = err ? 0 : cnt;
	path__clear(&path);
	free(rows);
	return err;
}

ORDER(compare_joins, struct join_line, BY(b->joined, a->joined));

/* Less than the uncertainty is no drift. */
static double drift_of(const struct clock_link *clock)
{
	const struct clock_point *first = clock->points.items, *last = first + clock->points.cnt - 1;
	double ns = fabs((double)last->offset_ns - (double)first->offset_ns);

	return ns > (double)clock->uncertainty_ns ? clock->drift_ppm : NAN;
}

static int make_joins(struct report *report, const struct traces *traces)
{
	const struct stitch *stitch = &traces->stitch;
	struct join_report *join = &report->path->join;

	*join = (struct join_report){
		.sessions = traces->sessions.cnt,
		.received = stitch->receives.cnt,
		.joined = stitch->joined,
		.ambiguous = stitch->ambiguous,
		.unknown_peer = stitch->unknown_peer,
		.not_kept = stitch->not_kept,
		.contradicting = stitch->contradicting,
		.clockless = stitch->clockless,
	};
	join->lines = arena__alloc(report->arena, stitch->links.cnt, sizeof(*join->lines));
	if (!join->lines)
		return -ENOMEM;
	for (size_t i = 0; i < stitch->links.cnt; i++) {
		const struct stitch_link *link = &stitch->links.items[i];

		join->lines[join->line_cnt++] = (struct join_line){
			.a = traces_string(traces, traces->sessions.items[link->a].host),
			.b = traces_string(traces, traces->sessions.items[link->b].host),
			.offset_ns = link->clock.offset_ns,
			.uncertainty_ns = link->clock.uncertainty_ns,
			.drift_ppm = drift_of(&link->clock),
			.forth_cnt = link->clock.forth_cnt,
			.back_cnt = link->clock.back_cnt,
			.contradicting_cnt = link->clock.contradicting_cnt,
			.joined = link->joined_cnt,
			.in_use = stitch->places[link->a].group == stitch->places[link->b].group,
		};
	}
	qsort(join->lines, join->line_cnt, sizeof(*join->lines), compare_joins);
	return 0;
}

int paths_report(struct report *report, const struct paths *paths, const struct report_opts *opts)
{
	struct path_rows ranked = {0};
	struct path_report *path;
	double all_ns = 0;
	int err;

	path = report->path = arena__alloc(report->arena, 1, sizeof(*report->path));
	if (!path)
		return -ENOMEM;
	*path = (struct path_report){
		.walked = paths->walked,
		.lossy = paths->lossy,
		.with_gap = paths->with_gap,
		.without_edge = paths->without_edge,
		.with_loop = paths->with_loop,
		.too_long = paths->too_long,
		.ambiguous = paths->ambiguous,
	};
	err = path_rows__init(&ranked, report, paths);
	for (size_t i = 0; i < ranked.rows.row_cnt && !err; i++)
		all_ns += ranked.weights[i] * (double)ranked.latency_ns[i];
	path->ambiguous_share = all_ns > 0 ? paths->ambiguous_ns / all_ns : NAN;
	if (!err)
		err = make_lines(report, paths, &ranked, opts);
	if (!err)
		err = make_crosstalk(report, paths);
	if (!err)
		err = make_joins(report, paths->traces);
	if (!err)
		err = tell_slowest(report, paths, opts->roots ? opts->roots->samples : NULL, opts->slowest);
	path_rows__free(&ranked);
	return err;
}
