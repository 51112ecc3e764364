// SPDX-License-Identifier: GPL-2.0-or-later
/* The kept requests as columns, as many as the page has room for. */
#include "view/html_data.h"

#include "base/names.h"
#include "base/random.h"
#include "view/html.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFLATED_MAX  (2000u << 10) /* 2.67 MB in base64: the page has 3 MB */
#define TRIES_MAX     24            /* what is not requests may not fit at all */
#define TYPES_MAX     1000
#define TIME_UNIT_NS  1000
#define TIME_BITS     30   /* of the whole recording in units */
#define LATE_ALL      0.05 /* with less than this share of the others, late requests are thinned as well */
#define GROUP_TYPICAL 1
#define GROUP_LATE    2
#define GROUP_RANKED  4

/* --- which requests ------------------------------------------------------------------------------------------------
 */

/* All late requests and a share of the others, whose weights make up for it. */
static int choose(struct html_rows *chosen, const struct findings *findings, double share)
{
	const struct dataset *dataset = &findings->dataset;
	double late_share = fmin(1, share / LATE_ALL);

	chosen->rows = malloc((dataset->row_cnt + 1) * sizeof(*chosen->rows));
	chosen->weight = malloc((dataset->row_cnt + 1) * sizeof(*chosen->weight));
	chosen->cnt = 0;
	if (!chosen->rows || !chosen->weight)
		return -ENOMEM;
	for (uint32_t row = 0; row < dataset->row_cnt; row++) {
		double of = html_is_late(findings, row) ? late_share : share;

		if (of < 1 && (double)(random_mix(row + 1) >> 11) * 0x1p-53 >= of)
			continue;
		chosen->rows[chosen->cnt] = row;
		chosen->weight[chosen->cnt++] = dataset->weight[row] / of;
	}
	return 0;
}

static void html_rows__free(struct html_rows *rows)
{
	free(rows->rows);
	free(rows->weight);
	*rows = (struct html_rows){0};
}

/* --- columns -------------------------------------------------------------------------------------------------------
 */

/* By the wall clock where there are several recordings. */
static int64_t begin_of(const struct dataset *dataset, uint32_t row)
{
	bool several = dataset->session_cnt > 1 && dataset->session_clock_ns;

	return (int64_t)dataset->begin_ts[row] + (several ? dataset->session_clock_ns[dataset->session[row]] : 0);
}

/* The time of day of the first request; null: not known. */
static void put_wall(struct html_pack *pack, const struct dataset *dataset, const struct html_rows *rows, int64_t first)
{
	int64_t clock_ns =
		rows->cnt && dataset->session_clock_ns ? dataset->session_clock_ns[dataset->session[rows->rows[0]]] : 0;
	bool several = dataset->session_cnt > 1;

	put(&pack->doc, pack->header, "begin_wall_ms",
	    clock_ns ? json_object_new_int64((several ? first : first + clock_ns) / 1000000) : NULL, !clock_ns);
}

static void put_begin(struct html_pack *pack, const struct dataset *dataset, const struct html_rows *rows)
{
	int64_t first = INT64_MAX, last = INT64_MIN, unit = TIME_UNIT_NS, before = 0;

	for (size_t i = 0; i < rows->cnt; i++) {
		int64_t begin = begin_of(dataset, rows->rows[i]);

		first = begin < first ? begin : first;
		last = begin > last ? begin : last;
	}
	while (rows->cnt && ((uint64_t)last - (uint64_t)first) / (uint64_t)unit >> TIME_BITS)
		unit *= 10;
	put_count(&pack->doc, pack->header, "time_unit_ns", (uint64_t)unit);
	put_wall(pack, dataset, rows, first);
	html_pack__column(pack, "begin");
	for (size_t i = 0; i < rows->cnt; i++) {
		int64_t at = (int64_t)(((uint64_t)begin_of(dataset, rows->rows[i]) - (uint64_t)first) / (uint64_t)unit);
		int64_t step = at - before;

		html_pack__number(pack, step < 0 ? (uint64_t)(-step) * 2 - 1 : (uint64_t)step * 2);
		before = at;
	}
}

static void put_groups(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows)
{
	const struct report *report = &findings->report;

	html_pack__column(pack, "group");
	for (size_t i = 0; i < rows->cnt; i++) {
		uint32_t row = rows->rows[i];
		uint64_t group = !report->ranked || report->ranked[row] ? GROUP_RANKED : 0;

		if (html_is_late(findings, row))
			group |= GROUP_LATE;
		else if ((double)findings->dataset.latency_ns[row] <= report->typical_ns)
			group |= GROUP_TYPICAL;
		html_pack__number(pack, group);
	}
}

static void put_types(struct html_pack *pack, const struct dataset *dataset, const struct html_rows *rows)
{
	struct json_object *types = put_array(&pack->doc, pack->header, "types");
	struct idmap ids = {0};

	html_pack__column(pack, "type");
	for (size_t i = 0; i < rows->cnt; i++) {
		uint32_t type = dataset->type ? dataset->type[rows->rows[i]] : 0, known = ids.cnt, id;

		if (idmap__id(&ids, type, 0, &id)) {
			pack->doc.err = -ENOMEM;
			break;
		}
		if (id == known && id <= TYPES_MAX)
			append(&pack->doc, types,
			       html_pack__string(pack, id < TYPES_MAX ? dataset->strings[type] : "other types"), false);
		html_pack__number(pack, id < TYPES_MAX ? id : TYPES_MAX);
	}
	idmap__free(&ids);
}

/* A column where there are several. */
static void put_hosts(struct html_pack *pack, const struct dataset *dataset, const struct html_rows *rows)
{
	struct json_object *hosts = put_array(&pack->doc, pack->header, "hosts");

	if (dataset->host_cnt < 2 || !dataset->host_idx)
		return;
	for (size_t h = 0; h < dataset->host_cnt; h++)
		append(&pack->doc, hosts, html_pack__string(pack, dataset->hosts[h].name), false);
	html_pack__column(pack, "host");
	for (size_t i = 0; i < rows->cnt; i++)
		html_pack__number(pack, dataset->host_idx[rows->rows[i]]);
}

static void put_weights(struct html_pack *pack, const struct html_rows *rows)
{
	struct json_object *weights = put_array(&pack->doc, pack->header, "weights");
	struct idmap ids = {0};

	html_pack__column(pack, "weight");
	for (size_t i = 0; i < rows->cnt; i++) {
		uint32_t known = ids.cnt, id;
		uint64_t bits;

		memcpy(&bits, &rows->weight[i], sizeof(bits));
		if (idmap__id(&ids, bits, 0, &id)) {
			pack->doc.err = -ENOMEM;
			break;
		}
		if (id == known)
			append(&pack->doc, weights, new_number(rows->weight[i]), false);
		html_pack__number(pack, id);
	}
	idmap__free(&ids);
}

static uint64_t category_ns(const struct dataset *dataset, int category, uint32_t row)
{
	return dataset->category_ns[category] ? dataset->category_ns[category][row] : 0;
}

static void put_categories(struct html_pack *pack, const struct dataset *dataset, const struct html_rows *rows)
{
	struct json_object *categories = put_array(&pack->doc, pack->header, "categories");

	html_pack__column(pack, "mask");
	for (size_t i = 0; i < rows->cnt; i++) {
		uint64_t mask = 0;

		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			mask |= (uint64_t)(category_ns(dataset, c, rows->rows[i]) > 0) << c;
		html_pack__number(pack, mask);
	}
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		struct json_object *category = append_object(&pack->doc, categories);
		char name[64];

		put_string(&pack->doc, category, "name", category_name((enum wl_category)c));
		put_string(&pack->doc, category, "label", category_label((enum wl_category)c));
		snprintf(name, sizeof(name), "ns.%s", category_name((enum wl_category)c));
		html_pack__column(pack, name);
		for (size_t i = 0; i < rows->cnt; i++)
			if (category_ns(dataset, c, rows->rows[i]))
				html_pack__ns(pack, category_ns(dataset, c, rows->rows[i]));
	}
}

void html_put_sparse(struct html_pack *pack, const char *column, const uint64_t *by_row, const struct html_rows *rows)
{
	uint64_t met = 0, before = 0;

	html_pack__column(pack, column);
	for (size_t i = 0; i < rows->cnt; i++)
		met += by_row && by_row[rows->rows[i]];
	html_pack__number(pack, met);
	for (size_t i = 0; met && i < rows->cnt; i++) {
		uint64_t ns = by_row[rows->rows[i]];

		if (!ns)
			continue;
		html_pack__number(pack, i - before);
		html_pack__ns(pack, ns);
		before = i + 1;
	}
}

static void put_causes(struct html_pack *pack, const struct report *report, const struct html_rows *rows)
{
	struct json_object *causes = put_array(&pack->doc, pack->header, "causes");

	for (size_t c = 0; c < report->cause_cnt; c++) {
		const struct cause *cause = &report->causes[c];
		struct json_object *object = append_object(&pack->doc, causes);
		char name[32], *label = NULL;

		if (asprintf(&label, "%u. %s", cause->rank,
			     cause->what ? cause->what : category_label(cause->category)) < 0) {
			pack->doc.err = -ENOMEM;
			return;
		}
		html_pack__put_string(pack, object, "label", label);
		free(label);
		snprintf(name, sizeof(name), "cause.%zu", c);
		html_put_sparse(pack, name, cause->row_ns, rows);
	}
}

/* --- the block -----------------------------------------------------------------------------------------------------
 */

static int build(const struct findings *findings, const struct contexts *contexts, double share, uint8_t **bytes,
		 size_t *sz)
{
	const struct report *report = &findings->report;
	struct html_rows rows = {0};
	struct html_pack pack;
	int err = choose(&rows, findings, share);

	html_pack__open(&pack);
	if (!err) {
		put_count(&pack.doc, pack.header, "rows", rows.cnt);
		put_count(&pack.doc, pack.header, "rows_kept", findings->dataset.row_cnt);
		put_bool(&pack.doc, pack.header, "thinned", rows.cnt < findings->dataset.row_cnt);
		put_number(&pack.doc, pack.header, "tail", report->tail);
		put_rounded(&pack.doc, pack.header, "tail_ns", report->tail_threshold_ns);
		put_begin(&pack, &findings->dataset, &rows);
		put_groups(&pack, findings, &rows);
		put_types(&pack, &findings->dataset, &rows);
		put_hosts(&pack, &findings->dataset, &rows);
		put_weights(&pack, &rows);
		put_categories(&pack, &findings->dataset, &rows);
		put_causes(&pack, report, &rows);
		html_crosstalk(&pack, contexts, &rows);
		html_contexts(&pack, contexts, &rows);
		html_events(&pack, report, &rows);
		html_values(&pack, report, &rows);
		html_detail(&pack, findings, &rows);
		html_stories(&pack, findings, &rows);
		err = html_pack__deflate(&pack, bytes, sz);
	}
	html_pack__free(&pack);
	html_rows__free(&rows);
	return err;
}

int html__data(struct html *html, const struct findings *findings, const struct contexts *contexts)
{
	uint8_t *bytes = NULL;
	double share = 1;
	size_t sz = 0;
	int err = build(findings, contexts, share, &bytes, &sz);

	for (int tries = 0; !err && sz > DEFLATED_MAX && tries < TRIES_MAX; tries++) {
		share *= fmin(0.9, 0.9 * DEFLATED_MAX / (double)sz);
		free(bytes);
		bytes = NULL;
		err = build(findings, contexts, share, &bytes, &sz);
	}
	if (!err) {
		html__put(html, "<script type=\"application/octet-stream\" id=\"data\">");
		html_put_base64(html->out, bytes, sz);
		html->explores = true;
		html__put(html, "</script>\n");
	}
	free(bytes);
	html->err = err ? err : html->err;
	return err;
}
